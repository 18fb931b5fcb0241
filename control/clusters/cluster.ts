/** What the broker keeps about a cluster, and when it counts as online. */
import { parseAddress, rangeProblem } from '#shared/domain/cidr.ts';
import type { ClusterRecord, ClusterView, SeenRecord } from '../model/cluster.ts';
import { offlineFrom } from './poll-policy.ts';

const addressesKept = 2;

/** A cluster that leaves by two ways in turn must not look as if it moved each time. */
export function seenFrom(address: string, before: readonly string[] = []): readonly string[] {
  const mayBeDialled = parseAddress(address) !== undefined && rangeProblem(`${address}/32`) === undefined;
  return !mayBeDialled || before.includes(address) ? before : [address, ...before].slice(0, addressesKept);
}

export function clusterView(
  record: ClusterRecord,
  version: number,
  seen: SeenRecord | undefined,
  now: number,
): ClusterView {
  const heard = seen ?? { at: record.joinedAt };
  return {
    id: record.id,
    state: record.state,
    online: record.state === 'joined' && now < offlineFrom(heard),
    lastSeenAt: heard.at,
    joinedAt: record.joinedAt,
    ...(record.leftAt === undefined ? {} : { leftAt: record.leftAt }),
    labels: record.labels ?? {},
    facts: record.facts,
    publicAddresses: record.publicAddresses ?? [],
    keyThumbprint: record.keyThumbprint,
    version,
  };
}
