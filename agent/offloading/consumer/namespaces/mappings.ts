/** Which namespaces are offloaded to one provider, read from its NamespaceMap. Pure. */
import { label } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import type { NamespaceMap } from '#shared/schema/liqo/namespace-map.ts';
import type { Mapping } from '../pods/decide.ts';

/** The map that we own; the copy that the same peer sent for the other direction carries the same cluster label. */
export const isOutgoing = (map: NamespaceMap, tenantNamespace: string, provider: string): boolean =>
  map.metadata.namespace === tenantNamespace &&
  map.metadata.labels?.[label.remoteId] === provider &&
  map.metadata.labels?.[label.replicated] !== 'true';

/**
 * The remote name, once the provider has made it. The status is the provider's word: of a namespace that this cluster does not offload, or under another
 * name than it asked for, it is not believed. Objects would follow it to the provider.
 */
function grantedName(map: NamespaceMap, namespace: string): string | undefined {
  const { spec, status } = map;
  const wanted = ownMember(spec?.desiredMapping, namespace);
  const current = ownMember(status?.currentMapping, namespace);
  if (!wanted || holderOf(map, wanted) !== namespace) return undefined;
  return current?.phase === 'Accepted' && current.remoteNamespace === wanted ? wanted : undefined;
}

/** Of several local namespaces that want one name: the one that the provider made it for, else the first by name. Two would delete each other's pods there. */
function holderOf({ spec, status }: NamespaceMap, remote: string): string | undefined {
  const desired = spec?.desiredMapping ?? {};
  const wanting = Object.keys(desired)
    .filter((local) => desired[local] === remote)
    .sort();
  const isMade = (local: string): boolean => {
    const current = ownMember(status?.currentMapping, local);
    return current?.remoteNamespace === remote && current.phase !== 'CreationLoopBackOff';
  };
  return wanting.find(isMade) ?? wanting[0];
}

/** Undefined: there is no map, so nothing is known and nothing may be given up. */
export function mappingOf(map: NamespaceMap | undefined, namespace: string): Mapping | undefined {
  if (!map) return undefined;
  const remoteNamespace = grantedName(map, namespace);
  if (remoteNamespace !== undefined) return { kind: 'accepted', remoteNamespace };
  const wanted = ownMember(map.spec?.desiredMapping, namespace);
  if (wanted === undefined) return { kind: 'none' };
  const holder = holderOf(map, wanted);
  if (holder !== namespace)
    return {
      kind: 'held',
      why: `spec.desiredMapping of NamespaceMap ${map.metadata.namespace}/${map.metadata.name} gives ${wanted} to namespace ${holder}, too, which has it: choose another name for ${namespace}`,
    };
  return { kind: 'held', why: heldBecause(namespace, ownMember(map.status?.currentMapping, namespace)?.phase) };
}

function heldBecause(namespace: string, phase: string | undefined): string {
  switch (phase) {
    case 'CreationLoopBackOff':
      return `the provider could not create its namespace for ${namespace}; kubectl describe namespaceoffloading -n ${namespace} offloading says why`;
    case 'Terminating':
      return `the provider's namespace for ${namespace} is being deleted`;
    default:
      return `the provider has not yet created its namespace for ${namespace}`;
  }
}

/**
 * Local to remote names of all namespaces whose objects at the provider are worth following, also those on their way out. The provider's word is not
 * believed where it gives the remote namespace of one namespace to another one: what is there would count as left behind by pods that never were.
 */
export function followed(map: NamespaceMap | undefined): ReadonlyMap<string, string> {
  if (map === undefined) return new Map();
  const desired = map.spec?.desiredMapping ?? {};
  const current = Object.entries(map.status?.currentMapping ?? {});
  const leaving = current.filter(([local]) => !Object.hasOwn(desired, local));
  const holders = new Map<string, string>();
  for (const [local, { remoteNamespace = '' }] of leaving.sort(([a], [b]) => (a < b ? -1 : 1)))
    if (!holders.has(remoteNamespace)) holders.set(remoteNamespace, local);
  for (const remote of Object.values(desired)) holders.set(remote, holderOf(map, remote) ?? '');
  const pairs = current.flatMap(([local, { remoteNamespace, phase }]) => {
    const isTheirs = holders.get(remoteNamespace ?? '') === local;
    return remoteNamespace && phase !== 'CreationLoopBackOff' && isTheirs ? [[local, remoteNamespace] as const] : [];
  });
  return new Map(pairs);
}

/** Local to remote names of the namespaces that the provider has made: what is reflected goes there. */
export function accepted(map: NamespaceMap | undefined): ReadonlyMap<string, string> {
  const pairs = Object.keys(map?.spec?.desiredMapping ?? {}).flatMap((local) => {
    const remote = map && grantedName(map, local);
    return remote === undefined ? [] : [[local, remote] as const];
  });
  return new Map(pairs);
}
