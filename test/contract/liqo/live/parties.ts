/** Which of two clusters' programs wrote what, and which of that is part of an exchange. Pure. */
import type { Exchange, Step } from '../exchange.ts';
import type { Write } from './audit.ts';
import { type Place, type Seen, stepsOf } from './capture.ts';
import { isthmusCluster, liqoCluster } from './names.ts';
import { inOrder } from './order.ts';
import { Words } from './words.ts';

const tenantNamespaces = [liqoCluster, isthmusCluster].map((name) => `liqo-tenant-${name}`);
const remoteNamespaces = [liqoCluster, isthmusCluster].map((name) => `shop-${name}`);

/** Of all that was written at both API servers while the two peered; `known` as for {@link Words}. */
export function stepsBetween(
  seen: readonly Seen[],
  isthmusIs: Exchange['isthmusIs'],
  known: Readonly<Record<string, string>>,
): readonly Step[] {
  const concerns = isthmusIs === 'provider' ? atProviderOfOurs : atConsumerOfOurs;
  return endOfRightsLast(stepsOf(inOrder(seen), new Words(known), writerOf, concerns));
}

/** A tenant is deleted, and with it its rights. */
const isEndOfRights = ({ by, delete: deleted, absent }: Step): boolean =>
  deleted?.kind === 'Tenant' || (by === 'isthmus' && absent?.kind.endsWith('RoleBinding') === true);
const programsOfPeer: readonly string[] = ['crd-replicator', 'virtual-kubelet'];

/**
 * liqoctl deletes the tenant while the peer's replicator still deletes what is its own, and the API server goes by its cache of bindings: a write of
 * the peer that it let through was one by rights that were not over yet, so it comes before their end.
 */
function endOfRightsLast(steps: readonly Step[]): readonly Step[] {
  const last = steps.findLastIndex(({ by }) => programsOfPeer.includes(by)) + 1;
  const before = steps.slice(0, last);
  return [...before.filter((step) => !isEndOfRights(step)), ...before.filter(isEndOfRights), ...steps.slice(last)];
}

function writerOf({ user, groups, program }: Write, at: Place): string | undefined {
  if (user === 'admin') return program === 'liqoctl' ? 'liqoctl' : 'user';
  if (user.startsWith('system:node:')) return 'kubelet';
  const peer = at === liqoCluster ? isthmusCluster : liqoCluster;
  const isPeer = user === peer || groups.includes(peer);
  if (at === isthmusCluster)
    return isPeer ? program : user.startsWith('system:serviceaccount:liqo:') ? 'isthmus' : undefined;
  if (isPeer) return 'isthmus';
  return /^system:serviceaccount:liqo(-tenant-\w+)?:/.test(user) ? program : undefined;
}

/** Everything here that a peer or its liqoctl writes, and what is brought about of it that one of them can see. */
function atProviderOfOurs({ at, write }: Seen, by: string): boolean {
  if (at !== isthmusCluster || by === 'user' || !isAboutPeer(write)) return false;
  return by === 'kubelet' ? write.type.kind === 'Pod' : !isSecretOfProvider(write);
}

/** At home, and of the provider what a consumer can see there. */
function atConsumerOfOurs({ at, write }: Seen, by: string): boolean {
  if (!isAboutPeer(write)) return false;
  if (at === isthmusCluster) return true;
  if (by === 'user' || by === '') return false;
  return write.type.kind !== 'Quota' && !isSecretOfProvider(write);
}

const isSecretOfProvider = ({ type, name }: Write): boolean => type.kind === 'Secret' && name !== 'liqo-nonce';

function isAboutPeer({ type, namespace, name }: Write): boolean {
  const spaces = [...tenantNamespaces, ...remoteNamespaces, 'shop'];
  if (type.kind === 'Namespace') return spaces.includes(name);
  if (namespace === '') return name.startsWith('liqo-binding-');
  // The agent's own rights in a namespace are its own matter.
  return spaces.includes(namespace) && !/^(kube-root-ca|isthmus-)/.test(name);
}
