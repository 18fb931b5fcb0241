/** What to do about one NamespaceOffloading: mappings, namespace label, finalizer and status, from what is. Pure. */
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import { type NodeFacts, nodeSelectorProblem, selectsCluster } from '#shared/domain/node-selector.ts';
import type { RemoteNamespaceStatus } from '#shared/schema/liqo/namespace-map.ts';
import type {
  NamespaceOffloading,
  NamespaceOffloadingStatus,
  RemoteNamespaceCondition,
} from '#shared/schema/liqo/namespace-offloading.ts';

/** One provider, as this cluster knows it. */
export interface ProviderFacts {
  readonly id: string;
  /** Its virtual nodes: the real Nodes, or what they would look like. */
  readonly nodes: readonly NodeFacts[];
  /** Absent: the virtual node controller has not made it yet, or it is gone. */
  readonly map?: MapFacts;
  /** Declared permanently unreachable: nothing waits for it. */
  readonly dead: boolean;
}

export interface MapFacts {
  readonly ref: ObjectRef;
  readonly deleting: boolean;
  /** What the map says about this namespace. */
  readonly desired?: string;
  readonly current?: RemoteNamespaceStatus;
}

export interface Observed {
  readonly offloading: NamespaceOffloading;
  readonly remoteName: string;
  readonly namespace: { readonly exists: boolean; readonly terminating: boolean; readonly labelled: boolean };
  readonly providers: readonly ProviderFacts[];
  /** Why this namespace can have no remote name at all, or which namespace has the name. */
  readonly refusal?: { readonly reason: string; readonly message: string };
  readonly hasFinalizer: boolean;
  /** RFC 3339. */
  readonly now: string;
}

interface Mapping {
  readonly map: ObjectRef;
  /** Null: take the entry out. */
  readonly remote: string | null;
}

export interface Decision {
  readonly finalizer: 'add' | 'keep' | 'remove' | 'none';
  /** Undefined: the label is as it should be. */
  readonly label?: boolean;
  readonly mappings: readonly Mapping[];
  readonly status: NamespaceOffloadingStatus;
  /** The component that must act before this one can go on. */
  readonly waitingOn?: string;
  /** A person must change something. */
  readonly problem?: { readonly reason: string; readonly message: string };
}

type Verdict = 'selected' | 'not-selected' | 'unknown';

export function decide(observed: Observed): Decision {
  return observed.offloading.metadata.deletionTimestamp ? decideDeletion(observed) : decideOffloading(observed);
}

function decideOffloading(observed: Observed): Decision {
  const { offloading, namespace, providers, refusal, remoteName } = observed;
  const selectorProblem = nodeSelectorProblem(offloading.spec.clusterSelector);
  const problem =
    refusal ??
    (selectorProblem === undefined
      ? undefined
      : { reason: 'InvalidClusterSelector', message: `spec.clusterSelector.${selectorProblem}` });
  // With a selector that cannot be evaluated, pods keep running: removing mappings would delete remote namespaces.
  const verdict = ({ nodes }: ProviderFacts): Verdict => {
    if (selectorProblem !== undefined) return 'unknown';
    return nodes.some((node) => selectsCluster(node, offloading.spec.clusterSelector)) ? 'selected' : 'not-selected';
  };
  const frozen = namespace.terminating || !namespace.exists;
  const mappings = frozen ? [] : providers.flatMap((p) => mappingFor(p, verdict(p), refusal ? undefined : remoteName));
  const conditions = Object.fromEntries(
    providers.flatMap((p) => {
      const now = { ...observed, verdict: verdict(p), refusal };
      return p.map === undefined && p.nodes.length === 0 ? [] : [[p.id, conditionsFor(p, now)] as const];
    }),
  );
  const wantsLabel = offloading.spec.podOffloadingStrategy !== 'Local' && refusal === undefined;
  const unmapped = providers.filter((p) => verdict(p) === 'selected' && p.map === undefined).map((p) => p.id);
  return {
    finalizer: observed.hasFinalizer || frozen ? 'keep' : 'add',
    ...(!frozen && namespace.labelled !== wantsLabel && { label: wantsLabel }),
    mappings,
    status: statusOf(observed, conditions),
    ...(unmapped.length > 0 && { waitingOn: `the NamespaceMap of ${unmapped.join(', ')}` }),
    ...(problem && { problem }),
  };
}

/** `remote` undefined: the name is refused, so an entry of ours must not be there either. */
function mappingFor({ map }: ProviderFacts, verdict: Verdict, remote: string | undefined): readonly Mapping[] {
  if (map === undefined || map.deleting || verdict === 'unknown') return [];
  const wanted = verdict === 'selected' ? remote : undefined;
  return map.desired === wanted ? [] : [{ map: map.ref, remote: wanted ?? null }];
}

interface Now extends Pick<Observed, 'now' | 'offloading' | 'remoteName'> {
  readonly verdict: Verdict;
  readonly refusal: Observed['refusal'];
}

function conditionsFor(provider: ProviderFacts, observed: Now): RemoteNamespaceCondition[] {
  const before = observed.offloading.status?.remoteNamespacesConditions?.[provider.id] ?? [];
  const current = provider.map?.current;
  const required =
    observed.verdict === 'selected' || (observed.verdict === 'unknown' && provider.map?.desired !== undefined);
  const wanted: Wanted[] = [
    required
      ? {
          type: 'OffloadingRequired',
          status: 'True',
          reason: 'ClusterSelected',
          message: `cluster ${provider.id} is selected`,
        }
      : {
          type: 'OffloadingRequired',
          status: 'False',
          reason: 'ClusterNotSelected',
          message: `no virtual node of cluster ${provider.id} matches spec.clusterSelector`,
        },
  ];
  if (required || current) wanted.push(readiness(provider, observed));
  return wanted.map((condition) => stamped(condition, before, observed.now));
}

type Wanted = Omit<RemoteNamespaceCondition, 'lastTransitionTime'>;

function readiness({ id, map }: ProviderFacts, { refusal, remoteName }: Now): Wanted {
  if (refusal) return { type: 'Ready', status: 'False', ...refusal };
  const current = map?.current;
  const remote = current?.remoteNamespace ?? remoteName;
  switch (current?.phase) {
    case 'Accepted':
      return {
        type: 'Ready',
        status: 'True',
        reason: 'NamespaceCreated',
        message: `namespace ${remote} exists at ${id}`,
      };
    case 'CreationLoopBackOff':
      return {
        type: 'Ready',
        status: 'False',
        reason: 'CreationLoopBackOff',
        message: `${id} cannot give us namespace ${remote}: the name is taken there, reserved, or not in guests.namespaces of its PeeringPolicy, which names that do not end with our cluster ID need; an Event there says which, and it is tried again by itself`,
      };
    case 'Terminating':
      return {
        type: 'Ready',
        status: 'False',
        reason: 'Terminating',
        message: `namespace ${remote} is going away at ${id}`,
      };
    default: {
      const wait = map === undefined ? 'there is no NamespaceMap for it yet' : `${id} has not answered yet`;
      return {
        type: 'Ready',
        status: 'False',
        reason: 'Creating',
        message: `namespace ${remote} is asked for: ${wait}`,
      };
    }
  }
}

/** The transition time moves only with status or reason. */
function stamped(wanted: Wanted, before: readonly RemoteNamespaceCondition[], now: string): RemoteNamespaceCondition {
  const same = before.find((c) => c.type === wanted.type && c.status === wanted.status && c.reason === wanted.reason);
  return { ...wanted, lastTransitionTime: same?.lastTransitionTime ?? now };
}

function statusOf(
  { offloading, remoteName }: Observed,
  remoteNamespacesConditions: Record<string, RemoteNamespaceCondition[]>,
): NamespaceOffloadingStatus {
  const generation = offloading.metadata.generation;
  return {
    remoteNamespaceName: remoteName,
    offloadingPhase: offloading.metadata.deletionTimestamp ? 'Terminating' : phaseOf(remoteNamespacesConditions),
    remoteNamespacesConditions,
    ...(generation !== undefined && { observedGeneration: generation }),
  };
}

/** Only clusters that are required count; one that is being removed neither helps nor harms. */
export function phaseOf(
  byCluster: Readonly<Record<string, readonly RemoteNamespaceCondition[]>>,
): NonNullable<NamespaceOffloadingStatus['offloadingPhase']> {
  const required = Object.values(byCluster).filter((conditions) =>
    conditions.some((c) => c.type === 'OffloadingRequired' && c.status === 'True'),
  );
  const ready = required.map((conditions) => conditions.find((c) => c.type === 'Ready'));
  if (required.length === 0) return 'NoClusterSelected';
  if (ready.every((c) => c?.status === 'True')) return 'Ready';
  const failed = ready.filter((c) => c?.status === 'False' && c.reason !== 'Creating' && c.reason !== 'Terminating');
  if (failed.length === required.length) return 'AllFailed';
  return failed.length > 0 ? 'SomeFailed' : 'InProgress';
}

/** Label, then mappings, then wait for the providers, then the finalizer. A dead provider is not waited for. */
function decideDeletion(observed: Observed): Decision {
  const { namespace, providers } = observed;
  const mappings = providers.flatMap(({ map }): Mapping[] =>
    map?.desired === undefined || map.deleting ? [] : [{ map: map.ref, remote: null }],
  );
  const pending = providers.filter(({ map, dead }) => !dead && (map?.current || (map?.desired && !map.deleting)));
  const conditions = Object.fromEntries(
    pending.map((p) => {
      const current = p.map?.current
        ? { map: { ...p.map, current: { ...p.map.current, phase: 'Terminating' as const } } }
        : {};
      return [p.id, conditionsFor({ ...p, ...current }, { ...observed, verdict: 'not-selected', refusal: undefined })];
    }),
  );
  return {
    finalizer: !observed.hasFinalizer ? 'none' : pending.length === 0 ? 'remove' : 'keep',
    ...(namespace.exists && namespace.labelled && { label: false }),
    mappings,
    status: statusOf(observed, conditions),
    ...(pending.length > 0 && {
      waitingOn: `${pending.map((p) => p.id).join(', ')} to remove namespace ${observed.remoteName}`,
    }),
  };
}
