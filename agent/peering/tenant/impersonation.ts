/** Whether a certificate in a consumer's name would inherit rights that were granted to that name for another reason. Pure. */
import type { ClusterRoleBinding } from '#shared/domain/core-kinds.ts';
import { type KubeObject, keyOf, type RoleBinding } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';

type Binding = RoleBinding | ClusterRoleBinding;

/** Bindings made for this consumer by a peering carry its label. */
const isOurs = (binding: KubeObject, consumer: string): boolean =>
  binding.metadata.labels?.[label.remoteClusterId] === consumer;

/** In words, the first binding that is not of this peering and names one of `users` or the group `consumer`. */
export function foreignGrant(
  consumer: string,
  users: readonly string[],
  bindings: readonly Binding[],
): string | undefined {
  for (const binding of bindings) {
    if (isOurs(binding, consumer)) continue;
    for (const subject of binding.subjects ?? []) {
      const isUser = subject.kind === 'User' && users.includes(subject.name);
      const isGroup = subject.kind === 'Group' && subject.name === consumer;
      if (!isUser && !isGroup) continue;
      const where = binding.metadata.namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding';
      return `${where} ${keyOf(binding)} grants ${binding.roleRef.kind} ${binding.roleRef.name} to ${subject.kind.toLowerCase()} "${subject.name}", and the consumer's certificate would inherit it; rename the consumer cluster or that subject`;
    }
  }
  return undefined;
}
