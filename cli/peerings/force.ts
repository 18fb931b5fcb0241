/** Ending a peering at one side alone, because the other cluster is gone for ever: on what evidence, what goes, and what stays behind. Pure. */
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { ForeignCluster, ForeignClusterCondition } from '#shared/schema/liqo/foreign-cluster.ts';

/** The agent asks a provider's API server every 15 s and gives it 5 s: what has been wrong for longer was seen twice. */
export const seenTwiceMs = 21_000;

export type Evidence =
  /** Something of the peer answers. */
  | { readonly kind: 'alive'; readonly what: string }
  /** Wrong, but seen once only. */
  | { readonly kind: 'early'; readonly what: string; readonly waitMs: number }
  | { readonly kind: 'gone'; readonly what: string }
  /** Nothing here ever talked to the peer. */
  | { readonly kind: 'none' };

const witnesses = [
  { type: 'APIServerStatus', good: 'Established', what: 'its API server' },
  { type: 'NetworkConnectionStatus', good: 'Established', what: 'the link to it' },
] as const;

/** One witness that sees the peer outweighs any that does not. */
export function evidenceOf({ status }: ForeignCluster, nowMs: number): Evidence {
  const evidence: readonly ForeignClusterCondition[] = [
    ...(status?.conditions ?? []),
    ...(status?.modules.networking.conditions ?? []),
  ];
  const seen = witnesses.flatMap(({ type, good, what }) => {
    const condition = evidence.find((one) => one.type === type);
    return condition === undefined ? [] : [{ what, isGood: condition.status === good, since: sinceOf(condition) }];
  });
  const alive = seen.find(({ isGood }) => isGood);
  if (alive) return { kind: 'alive', what: alive.what };
  const [first] = seen;
  if (first === undefined) return { kind: 'none' };
  const ages = seen.map(({ since }) => nowMs - since);
  const what = `${seen.map((one) => one.what).join(' and ')} ${seen.length === 1 ? 'has' : 'have'} not answered for ${Math.round(Math.min(...ages) / 1_000)} s`;
  const waitMs = seenTwiceMs - Math.min(...ages);
  return waitMs > 0 ? { kind: 'early', what, waitMs } : { kind: 'gone', what };
}

/** Without a time it was just written. */
const sinceOf = ({ lastTransitionTime }: ForeignClusterCondition): number => Date.parse(lastTransitionTime ?? '') || 0;

export interface Shared {
  readonly self: string;
  readonly peer: string;
  /** ResourceSlices by which this cluster has capacity of the peer. */
  readonly slices: readonly KubeObject[];
  /** Pods of this cluster that run, or ran, at the peer. */
  readonly pods: number;
  /** Tenant: the peer has capacity of this cluster. */
  readonly isProvider: boolean;
  readonly isLinked: boolean;
  /** Namespace of this cluster at the peer, where that is known. */
  readonly remoteNamespace: string | undefined;
}

/** What stays behind at a peer that does not answer, a line each. */
export function leftBehind({ self, peer, slices, pods, isProvider, isLinked, remoteNamespace }: Shared): string[] {
  const where = remoteNamespace ?? `the tenant namespace of ${self}`;
  const copies = slices.map(({ metadata }) => metadata.name).join(', ');
  return [
    ...(slices.length > 0
      ? [
          `${where} with Tenant ${self}, its certificate (worthless once the Tenant goes) and the copies of ${copies}`,
          `namespaces offloaded by ${self}, with what runs in them${pods > 0 ? `: ${pods} pods of ${self}` : ''}`,
        ]
      : []),
    ...(isProvider ? [`its ResourceSlices, virtual nodes and pods on them that were to run in ${self}`] : []),
    ...(isLinked ? [`its end of the link to ${self}: gateway, keys and ranges`] : []),
  ].map((what) => `${peer}: ${what}`);
}
