/** Reads everything about one peering that the state machine and its writer need, with the versions it was read at. */
import type { ClusterRecord, SeenRecord } from '../clusters/cluster.ts';
import { key } from '../keys.ts';
import type { Item, Key, Store } from '../ports/store.ts';
import type {
  DesiredRecord,
  LookRecord,
  ObservedRecord,
  PairRecord,
  PeeringRecord,
  RevisionRecord,
  SideInput,
} from './records.ts';

export interface LoadedSide {
  readonly clusterId: string;
  readonly input: SideInput;
  readonly desired?: Item<DesiredRecord>;
  readonly observed?: Item<ObservedRecord>;
  readonly revision?: Item<RevisionRecord>;
}

export interface LoadedPeering {
  readonly tenant: string;
  readonly item: Item<PeeringRecord>;
  readonly consumer: LoadedSide;
  readonly provider: LoadedSide;
  readonly opposite: boolean;
  readonly look?: Item<LookRecord>;
  readonly pair?: Item<PairRecord>;
  /** The entries by which each cluster finds this peering. */
  readonly indexes: readonly Item[];
}

/** Over, for both sides or with one left behind: the pair is free of it as far as the living are concerned. */
export const hasEnded = ({ state }: PeeringRecord): boolean => state.removal?.endedAt !== undefined;

export const isEnding = ({ spec, state }: PeeringRecord): boolean =>
  spec.unpeerRequestedAt !== undefined || state.removal !== undefined;

export async function loadPeering(
  store: Store,
  tenant: string,
  id: string,
  signal?: AbortSignal,
): Promise<LoadedPeering | undefined> {
  const read = <T>({ pk, sk }: Key): Promise<Item<T> | undefined> => store.get<T>(pk, sk, signal);
  const item = await read<PeeringRecord>(key.peering(tenant, id));
  if (!item) return undefined;
  const { consumer, provider } = item.value.spec;

  async function side(clusterId: string): Promise<LoadedSide | undefined> {
    const [cluster, seen, observed, desired, revision] = await Promise.all([
      read<ClusterRecord>(key.cluster(tenant, clusterId)),
      read<SeenRecord>(key.seen(tenant, clusterId)),
      read<ObservedRecord>(key.observed(tenant, clusterId, id)),
      read<DesiredRecord>(key.desired(tenant, clusterId, id)),
      read<RevisionRecord>(key.revision(tenant, clusterId)),
    ]);
    if (!cluster) return undefined;
    const input: SideInput = {
      facts: cluster.value.facts,
      lastSeenAt: seen?.value.at ?? cluster.value.joinedAt,
      left: cluster.value.state === 'left',
      ...(observed ? { observed: observed.value } : {}),
      ...(desired ? { desired: desired.value } : {}),
    };
    return {
      clusterId,
      input,
      ...(observed ? { observed } : {}),
      ...(desired ? { desired } : {}),
      ...(revision ? { revision } : {}),
    };
  }

  const [ofConsumer, ofProvider, look, back, pair, ...indexes] = await Promise.all([
    side(consumer),
    side(provider),
    read<LookRecord>(key.look(tenant, id)),
    read<PairRecord>(key.pair(tenant, provider, consumer)),
    read<PairRecord>(key.pair(tenant, consumer, provider)),
    read(key.peeringOf(tenant, consumer, id)),
    read(key.peeringOf(tenant, provider, id)),
  ]);
  if (!ofConsumer || !ofProvider) return undefined;
  const other = back && (await read<PeeringRecord>(key.peering(tenant, back.value.id)));
  return {
    tenant,
    item,
    consumer: ofConsumer,
    provider: ofProvider,
    opposite: other !== undefined && other.value.state.consentedAt !== undefined && !hasEnded(other.value),
    ...(look ? { look } : {}),
    ...(pair ? { pair } : {}),
    indexes: indexes.filter((index) => index !== undefined),
  };
}
