/** What to do about a peering. Pure. */
import type { Peering } from '#shared/schema/api/resources.ts';

/** The first thing that a person can do, else that there is nothing to do. */
export function nextStep(peering: Peering): string {
  const { consumer, provider, phase } = peering;
  const open = peering.conditions.find(({ status, action }) => status !== 'True' && action !== '');
  if (phase === 'Gone') return `nothing; peer again with \`isthmus peer ${consumer} ${provider}\``;
  if (phase === 'Unpeering') return open?.action ?? 'nothing: the end always comes, also when a side is dead';
  if (open) return open.action;
  if (phase === 'Ready')
    return `offload a namespace: \`isthmus offload namespace NAMESPACE --kubeconfig KUBECONFIG-OF-${consumer.toUpperCase()}\``;
  return 'nothing but waiting';
}
