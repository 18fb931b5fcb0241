/** Reads everything about one peering that the state machine and its writer need, with the versions it was read at. */
import type { PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { offlineFrom } from '../../clusters/poll-policy.ts';
import type { ClusterRecord, SeenRecord } from '../../model/cluster.ts';
import type { CrossTenant, PeerOfCluster } from '../../model/cross-tenant.ts';
import type { InvitationRecord } from '../../model/invitation.ts';
import type { LinkLayout } from '../../model/link.ts';
import type {
  DesiredRecord,
  LookRecord,
  ObservedRecord,
  PairRecord,
  PeeringRecord,
  PeeringSpec,
  RevisionRecord,
  SideInput,
} from '../../model/peering-records.ts';
import type { Item, Key, Store } from '../../ports/store.ts';
import { key } from '../../store/keys.ts';
import { hasEnded } from '../core/ended.ts';
import { otherRole, roles } from '../core/roles.ts';
import { type Copies, homeOf, loadCopies, tenantOf } from '../cross-tenant/copies.ts';

export interface LoadedSide {
  readonly tenant: string;
  readonly clusterId: string;
  readonly input: SideInput;
  readonly desired?: Item<DesiredRecord>;
  readonly observed?: Item<ObservedRecord>;
  readonly revision?: Item<RevisionRecord>;
}

export interface LoadedPeering {
  /** Where the shared item, the looks and the due times are: of two tenants, the provider's. */
  readonly tenant: string;
  readonly item: Item<PeeringRecord>;
  readonly consumer: LoadedSide;
  readonly provider: LoadedSide;
  readonly opposite: boolean;
  /** How the peering the other way around has laid out the link that both share. */
  readonly oppositeLink?: LinkLayout;
  readonly oppositeId?: string;
  readonly look?: Item<LookRecord>;
  readonly pair?: Item<PairRecord>;
  /** The entries by which each cluster finds this peering. */
  readonly indexes: readonly Item[];
  /** Across tenants: what each of them reads. */
  readonly copies: Copies;
  /** Across tenants, while consent is missing: the invitation that it rests on. */
  readonly invitation?: Item<Pick<InvitationRecord, 'revokedAt'>>;
}

/** A deleted cluster of another tenant: a wait for it cannot end. */
const vanished: SideInput = {
  facts: {
    agentVersion: '',
    protocolVersion: 1,
    capabilities: [],
    kubernetesVersion: '',
    apiServerUrl: 'https://gone.invalid',
    apiServerCa: '',
    podCidrs: [],
    serviceCidrs: [],
    nodes: 0,
    allocatable: {},
    policies: [],
  },
  lastSeenAt: 0,
  offlineFrom: 0,
  left: true,
};

/** `tenant` is any of those that have it. */
export async function loadPeering(
  store: Store,
  tenant: string,
  id: string,
  signal?: AbortSignal,
): Promise<LoadedPeering | undefined> {
  const read = <T>({ pk, sk }: Key): Promise<Item<T> | undefined> => store.get<T>(pk, sk, signal);
  const own = await read<PeeringRecord>(key.peering(tenant, id));
  if (!own) return undefined;
  const { across } = own.value.spec;
  const item = across ? await read<PeeringRecord>(homeOf(tenant, own.value.spec)) : own;
  if (!item) return undefined;
  const { spec, state } = item.value;

  async function side(role: PeeringRole): Promise<LoadedSide | undefined> {
    const clusterId = spec[role];
    const of = tenantOf(tenant, spec, role);
    const [cluster, seen, observed, desired, revision] = await Promise.all([
      read<ClusterRecord>(key.cluster(of, clusterId)),
      read<SeenRecord>(key.seen(of, clusterId)),
      read<ObservedRecord>(key.observed(of, clusterId, id)),
      read<DesiredRecord>(key.desired(of, clusterId, id)),
      read<RevisionRecord>(key.revision(of, clusterId)),
    ]);
    if (!cluster) return across && { tenant: of, clusterId, input: vanished };
    const heard: SeenRecord = seen?.value ?? { at: cluster.value.joinedAt };
    const input: SideInput = {
      facts: cluster.value.facts,
      lastSeenAt: heard.at,
      offlineFrom: offlineFrom(heard),
      left: cluster.value.state === 'left',
      publicAddresses: cluster.value.publicAddresses ?? [],
      ...(observed ? { observed: observed.value } : {}),
      ...(desired ? { desired: desired.value } : {}),
    };
    return {
      tenant: of,
      clusterId,
      input,
      ...(observed ? { observed } : {}),
      ...(desired ? { desired } : {}),
      ...(revision ? { revision } : {}),
    };
  }

  const rests = across?.grant.by === 'invitation' && state.consentedAt === undefined;
  const home = across?.provider ?? tenant;
  const [consumer, provider, look, names, copies, invitation, ...indexes] = await Promise.all([
    side('consumer'),
    side('provider'),
    read<LookRecord>(key.look(home, id)),
    across ? crossTenantNames(store, spec, across, signal) : namesWithin(store, tenant, spec, signal),
    loadCopies(store, spec, signal),
    rests ? read<InvitationRecord>(key.invitation(across.provider, across.grant.id)) : undefined,
    ...roles.map((role) => read(key.peeringOf(tenantOf(tenant, spec, role), spec[role], id))),
  ]);
  if (!consumer || !provider) return undefined;
  return {
    tenant: home,
    item,
    consumer,
    provider,
    opposite: names.opposite,
    ...(names.oppositeLink ? { oppositeLink: names.oppositeLink } : {}),
    ...(names.oppositeId === undefined ? {} : { oppositeId: names.oppositeId }),
    copies,
    ...(look ? { look } : {}),
    ...(names.pair ? { pair: names.pair } : {}),
    ...(invitation ? { invitation } : {}),
    indexes: [...indexes, ...names.indexes].filter((index) => index !== undefined),
  };
}

interface Names {
  readonly opposite: boolean;
  readonly oppositeLink?: LinkLayout;
  readonly oppositeId?: string;
  readonly pair?: Item<PairRecord>;
  readonly indexes: readonly Item[];
}

function oppositeOf(other: PeeringRecord | undefined): Pick<Names, 'opposite' | 'oppositeLink' | 'oppositeId'> {
  const opposite = other !== undefined && other.state.consentedAt !== undefined && !hasEnded(other);
  const layout = opposite ? other.state.link?.layout : undefined;
  return { opposite, ...(opposite ? { oppositeId: other.spec.id } : {}), ...(layout ? { oppositeLink: layout } : {}) };
}

async function namesWithin(store: Store, tenant: string, spec: PeeringSpec, signal?: AbortSignal): Promise<Names> {
  const read = <T>({ pk, sk }: Key): Promise<Item<T> | undefined> => store.get<T>(pk, sk, signal);
  const [back, pair] = await Promise.all([
    read<PairRecord>(key.pair(tenant, spec.provider, spec.consumer)),
    read<PairRecord>(key.pair(tenant, spec.consumer, spec.provider)),
  ]);
  const other = back && (await read<PeeringRecord>(key.peering(tenant, back.value.id)));
  return { ...oppositeOf(other?.value), indexes: [], ...(pair ? { pair } : {}) };
}

/** A name stays taken as long as the peering the other way around lives. */
async function crossTenantNames(
  store: Store,
  spec: PeeringSpec,
  across: CrossTenant,
  signal?: AbortSignal,
): Promise<Names> {
  const read = <T>({ pk, sk }: Key): Promise<Item<T> | undefined> => store.get<T>(pk, sk, signal);
  const entries = await Promise.all(
    roles.map((role) => read<PeerOfCluster>(key.peer(across[role], spec[role], spec[otherRole(role)]))),
  );
  const mine = entries.filter((entry, i) => entry?.value[roles[i] ?? 'consumer'] === spec.id);
  const back = entries[0]?.value.provider;
  const other = back === undefined ? undefined : await read<PeeringRecord>(key.peering(across.consumer, back));
  const busy = other !== undefined && other.value.state.removal?.finishedAt === undefined;
  return { ...oppositeOf(other?.value), indexes: busy ? [] : mine.filter((entry) => entry !== undefined) };
}
