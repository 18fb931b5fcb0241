/**
 * No cluster has two peers of one name (docs/design/principles.md#how-are-clusters-named). Names inside a tenant are unique by nature; a peer of another tenant claims its name
 * at each side, in an entry that the claiming transaction writes and every other one checks.
 */
import { AppError } from '#shared/errors/app-error.ts';
import type { CrossTenant, PeerOfCluster } from '../../model/cross-tenant.ts';
import type { PairRecord, PeeringRecord } from '../../model/peering-records.ts';
import type { Item, Key, Op, Store } from '../../ports/store.ts';
import { key } from '../../store/keys.ts';
import { hasEnded } from '../core/ended.ts';
import { otherRole, roles } from '../core/roles.ts';

interface Named {
  readonly consumer: string;
  readonly provider: string;
}

const reader =
  (store: Store, signal: AbortSignal | undefined) =>
  <T>({ pk, sk }: Key): Promise<Item<T> | undefined> =>
    store.get<T>(pk, sk, signal);

const checked = (at: Key, item: Item | undefined): Op => ({ op: 'check', ...at, ifVersion: item?.version ?? 0 });

const unfinished = (item: Item<PeeringRecord> | undefined): boolean =>
  item !== undefined && item.value.state.removal?.finishedAt === undefined;

/** The first of these peerings that is not over, as its tenant sees it. */
async function firstBusy(
  store: Store,
  tenant: string,
  ids: readonly (string | undefined)[],
  signal?: AbortSignal,
): Promise<Item<PeeringRecord> | undefined> {
  for (const id of ids) {
    const item = id === undefined ? undefined : await reader(store, signal)<PeeringRecord>(key.peering(tenant, id));
    if (unfinished(item)) return item;
  }
  return undefined;
}

interface Clash {
  /** Whose cluster already has a peer of the name. */
  readonly tenant: string;
  readonly cluster: string;
  readonly peer: string;
  readonly peerTenant: string;
  /** The asking tenant. Of another tenant's cluster it learns only that the name is taken. */
  readonly asking: string;
}

function taken({ tenant, cluster, peer, peerTenant, asking }: Clash): AppError {
  const text =
    tenant === asking
      ? `${cluster} is peered with ${peer} of ${peerTenant === tenant ? 'your own tenant' : `tenant ${peerTenant}`} already, and a cluster cannot have two peers of one name; unpeer that one, or join one of the two clusters under another name`
      : `${cluster} of tenant ${tenant} has a peer named ${peer} already, and a cluster cannot have two peers of one name; join your cluster under another name`;
  return new AppError('cluster_id_taken', text, { detail: { cluster, peer } });
}

/** Claims the names for a new peering across tenants; the operations make the claim hold. */
export async function claimNames(
  store: Store,
  claim: Named & { readonly id: string; readonly across: CrossTenant; readonly asking: string },
  signal?: AbortSignal,
): Promise<Op[]> {
  const { across, asking, id } = claim;
  if (claim.consumer === claim.provider) {
    throw new AppError(
      'cluster_id_taken',
      `both clusters are called ${claim.consumer}, and peers know each other by their names; join yours under another name`,
      { detail: { cluster: claim.consumer, peer: claim.provider } },
    );
  }
  const read = reader(store, signal);
  const ops: Op[] = [];
  for (const role of roles) {
    const [tenant, cluster] = [across[role], claim[role]];
    const [peerTenant, peer] = [across[otherRole(role)], claim[otherRole(role)]];
    const clash = { tenant, cluster, peer, asking };
    for (const at of [key.pair(tenant, cluster, peer), key.pair(tenant, peer, cluster)]) {
      const pair = await read<PairRecord>(at);
      if (await firstBusy(store, tenant, [pair?.value.id], signal)) throw taken({ ...clash, peerTenant: tenant });
      ops.push(checked(at, pair));
    }
    const at = key.peer(tenant, cluster, peer);
    const entry = await read<PeerOfCluster>(at);
    const same = entry?.value.tenant === peerTenant;
    if (entry && !same && (await firstBusy(store, tenant, [entry.value.consumer, entry.value.provider], signal)))
      throw taken({ ...clash, peerTenant: entry.value.tenant });
    const value: PeerOfCluster = { ...(same ? entry.value : { tenant: peerTenant }), [role]: id };
    ops.push(entry ? { op: 'update', ...at, value, ifVersion: entry.version } : { op: 'put', ...at, value });
  }
  return ops;
}

/** Refuses a peering within a tenant whose names a peer of another tenant has; the operations make it stay so. */
export async function freeNames(
  store: Store,
  tenant: string,
  { consumer, provider }: Named,
  signal?: AbortSignal,
): Promise<Op[]> {
  const read = reader(store, signal);
  const ends = [
    { cluster: consumer, peer: provider },
    { cluster: provider, peer: consumer },
  ];
  return Promise.all(
    ends.map(async ({ cluster, peer }) => {
      const at = key.peer(tenant, cluster, peer);
      const entry = await read<PeerOfCluster>(at);
      if (entry && (await firstBusy(store, tenant, [entry.value.consumer, entry.value.provider], signal)))
        throw taken({ tenant, cluster, peer, peerTenant: entry.value.tenant, asking: tenant });
      return checked(at, entry);
    }),
  );
}

/** The peering of a pair as `tenant` sees it: the living one, else the one within the tenant, else one that was across. */
export async function loadPair(
  store: Store,
  tenant: string,
  { consumer, provider }: Named,
  signal?: AbortSignal,
): Promise<Item<PeeringRecord> | undefined> {
  const read = reader(store, signal);
  const byId = async (id: string | undefined): Promise<Item<PeeringRecord> | undefined> =>
    id === undefined ? undefined : read<PeeringRecord>(key.peering(tenant, id));
  const pair = await read<PairRecord>(key.pair(tenant, consumer, provider));
  const own = await byId(pair?.value.id);
  if (own && !hasEnded(own.value)) return own;
  const [ofConsumer, ofProvider] = await Promise.all([
    read<PeerOfCluster>(key.peer(tenant, consumer, provider)),
    read<PeerOfCluster>(key.peer(tenant, provider, consumer)),
  ]);
  const across = [await byId(ofConsumer?.value.consumer), await byId(ofProvider?.value.provider)];
  return across.find((item) => item && !hasEnded(item.value)) ?? own ?? across.find((item) => item !== undefined);
}
