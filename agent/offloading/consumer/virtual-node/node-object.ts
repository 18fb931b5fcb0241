/** The Node that stands for a provider: metadata, status and conditions (docs/design/offloading.md#what-does-the-node-say), and how an existing one must change. */
import { isStorageResource } from '#agent/peering/slices/storage-offer.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import {
  cordonedTaint,
  isthmusAnnotation,
  label,
  virtualNodeTaint,
  virtualNodeType,
} from '#shared/domain/liqo-keys.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import type { ProviderCondition } from '#shared/schema/liqo/resource-slice.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';

type Texts = Readonly<Record<string, string>>;
type NodeStatus = NonNullable<Node['status']>;
type NodeCondition = NonNullable<NodeStatus['conditions']>[number];
type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number];

export interface NodeInput {
  readonly virtualNode: VirtualNode;
  /** Address and port of this node's kubelet endpoint. */
  readonly hostIp: string;
  readonly port: number;
  /** `gitVersion` of the provider's API server. */
  readonly version: string;
  readonly network: Exclude<NetworkState, 'unknown'>;
  /** What the provider says about its nodes; absent where it says nothing (Liqo). */
  readonly provider?: readonly ProviderCondition[] | undefined;
}

const isCordoned = (provider: readonly ProviderCondition[] | undefined): boolean =>
  provider?.some(({ type, status }) => type === 'Cordoned' && status === 'True') ?? false;

/** The link to the provider: `none` for a peering without a network, and where the VirtualNode says not to look. `unknown`: not computed yet. */
export type NetworkState = 'none' | 'up' | 'down' | 'unknown';

/** docs/design/offloading.md#what-does-the-node-say. `foreign`: the summary of the provider. */
export function networkState(
  foreign: ForeignCluster | undefined,
  disableNetworkCheck: boolean | undefined,
): NetworkState {
  if (disableNetworkCheck === true || foreign === undefined) return 'none';
  if (foreign.status === undefined) return 'unknown';
  const { enabled, conditions } = foreign.status.modules.networking;
  if (!enabled) return 'none';
  const connection = conditions?.find(({ type }) => type === 'NetworkConnectionStatus');
  return connection?.status === 'Established' ? 'up' : 'down';
}

/** What we put on a Node, by key: kept on it as an annotation, so that what is dropped later is taken off and the rest is left alone. */
interface AppliedKeys {
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
  readonly taints: readonly string[];
}

const taintKey = ({ key, effect }: Taint): string => `${key}:${effect}`;

function nodeLabels({ metadata, spec }: VirtualNode): Record<string, string> {
  return {
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
    ...spec.labels,
    'kubernetes.io/hostname': metadata.name,
    'kubernetes.io/role': 'agent',
    type: 'virtual-kubelet',
    'node.kubernetes.io/exclude-from-external-load-balancers': 'true',
    'alpha.service-controller.kubernetes.io/exclude-balancer': 'true',
    [label.type]: virtualNodeType,
    [label.remoteClusterId]: spec.clusterID,
    [label.storageAvailable]: String((spec.storageClasses ?? []).length > 0),
  };
}

const taintsOf = ({ spec }: VirtualNode, cordoned: boolean): Taint[] => [
  ...(spec.taints ?? []).filter((taint) => taint.key !== virtualNodeTaint.key && taint.key !== cordonedTaint.key),
  { ...virtualNodeTaint },
  ...(cordoned ? [{ ...cordonedTaint }] : []),
];

/** Is this Node ours to write? A Node of the same name with another creator never is. */
export const isOurs = (node: Node, { spec }: VirtualNode): boolean =>
  isVirtualNode(node) && node.metadata.labels?.[label.remoteClusterId] === spec.clusterID;

export function newNode(input: NodeInput, now: string): Node {
  const { virtualNode } = input;
  const annotations = { ...virtualNode.spec.annotations };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: virtualNode.metadata.name,
      labels: nodeLabels(virtualNode),
      annotations: { ...annotations, [isthmusAnnotation.nodeApplied]: JSON.stringify(appliedKeys(virtualNode)) },
    },
    spec: { taints: taintsOf(virtualNode, isCordoned(input.provider)) },
    status: nodeStatus(input, undefined, now),
  } as Node;
}

function appliedKeys(virtualNode: VirtualNode): AppliedKeys {
  return {
    labels: Object.keys(virtualNode.spec.labels ?? {}).sort(),
    annotations: Object.keys(virtualNode.spec.annotations ?? {}).sort(),
    taints: (virtualNode.spec.taints ?? []).map(taintKey).sort(),
  };
}

function appliedBefore(node: Node): AppliedKeys {
  const nothing = { labels: [], annotations: [], taints: [] };
  try {
    return { ...nothing, ...JSON.parse(node.metadata.annotations?.[isthmusAnnotation.nodeApplied] ?? '{}') };
  } catch {
    return nothing;
  }
}

function mapPatch(have: Texts | undefined, want: Texts, before: readonly string[]): Record<string, string | null> {
  const changed = Object.entries(want).filter(([key, value]) => have?.[key] !== value);
  const dropped = before.filter((key) => !Object.hasOwn(want, key) && have?.[key] !== undefined);
  return Object.fromEntries([...changed, ...dropped.map((key) => [key, null] as const)]);
}

/** Merge patch of metadata and taints, undefined when nothing differs. Labels, annotations and taints of others stay. */
export function nodePatch(
  node: Node,
  virtualNode: VirtualNode,
  provider?: readonly ProviderCondition[],
): Record<string, unknown> | undefined {
  const before = appliedBefore(node);
  const keys = JSON.stringify(appliedKeys(virtualNode));
  const labels = mapPatch(node.metadata.labels, nodeLabels(virtualNode), before.labels);
  const wanted = { ...virtualNode.spec.annotations, [isthmusAnnotation.nodeApplied]: keys };
  const annotations = mapPatch(node.metadata.annotations, wanted, before.annotations);
  const own = taintsOf(virtualNode, isCordoned(provider));
  const ours = new Set([...before.taints, ...own.map(taintKey), taintKey(cordonedTaint)]);
  const have = node.spec?.taints ?? [];
  const missing = own.some((taint) => !have.some((t) => taintKey(t) === taintKey(taint) && t.value === taint.value));
  const stale = have.some((taint) => ours.has(taintKey(taint)) && !own.some((t) => taintKey(t) === taintKey(taint)));
  const taints = missing || stale ? [...have.filter((taint) => !ours.has(taintKey(taint))), ...own] : undefined;
  const metadata = {
    ...(Object.keys(labels).length ? { labels } : {}),
    ...(Object.keys(annotations).length ? { annotations } : {}),
  };
  if (!Object.keys(metadata).length && !taints) return undefined;
  // The list of taints is replaced whole, and others write it too: only on what was read.
  const version = taints ? { resourceVersion: node.metadata.resourceVersion } : {};
  return { metadata: { ...metadata, ...version }, ...(taints ? { spec: { taints } } : {}) };
}

const isZero = (quantity: unknown): boolean => Number.parseFloat(String(quantity)) === 0;
type Resources = Readonly<Record<string, string | number>>;
/** No pod requests storage of its node: claims count elsewhere. */
const hardOf = ({ spec }: VirtualNode): Resources =>
  Object.fromEntries(Object.entries(spec.resourceQuota?.hard ?? {}).filter(([name]) => !isStorageResource(name)));
const lacks = (hard: Resources, resource: string): boolean => hard[resource] === undefined || isZero(hard[resource]);
/** Named, but nothing of it. */
const exhausts = (hard: Resources, resource: string): boolean => hard[resource] !== undefined && isZero(hard[resource]);

type Health = Pick<NodeInput, 'network' | 'provider'>;

interface Verdict {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

type Pressure = 'Memory' | 'Disk' | 'PID';

function pressure(what: Pressure, pressed: boolean, provider: NodeInput['provider']): Verdict {
  const type = `${what}Pressure`;
  const said = provider?.find((condition) => condition.type === type && condition.status === 'True');
  if (said && !pressed)
    return { type, status: 'True', reason: `RemoteClusterHas${what}Pressure`, message: said.message };
  return pressed
    ? { type, status: 'True', reason: `RemoteClusterHas${what}Pressure`, message: `the provider grants no ${what}` }
    : {
        type,
        status: 'False',
        reason: what === 'Memory' ? 'RemoteClusterHasSufficientMemory' : `RemoteClusterHasNo${what}Pressure`,
        message: `the provider grants enough ${what}`,
      };
}

const networkUnavailable = 'NetworkUnavailable';
const networkReasons = { up: 'LiqoNetworkingUp', down: 'LiqoNetworkingDown' } as const;

const networkVerdict = (network: 'up' | 'down'): Verdict => ({
  type: networkUnavailable,
  status: network === 'up' ? 'False' : 'True',
  reason: networkReasons[network],
  message:
    network === 'up' ? 'the provider answers through the link' : 'no answer comes from the provider through the link',
});

function verdicts(hard: Resources, { network, provider }: Health): readonly Verdict[] {
  const lacking = ['cpu', 'memory'].filter((resource) => lacks(hard, resource));
  const missing = [
    ...(lacking.length ? [`the provider grants no ${lacking.join(' and no ')}`] : []),
    ...(network === 'down' ? ['the link to the provider does not work'] : []),
    ...(provider ?? []).flatMap(({ type, status, message }) =>
      type === 'Ready' && status === 'False' ? [message] : [],
    ),
  ];
  const ready: Verdict = missing.length
    ? { type: 'Ready', status: 'False', reason: 'KubeletNotReady', message: missing.join('; ') }
    : { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'the API server of the provider answers' };
  return [
    ready,
    pressure('Memory', lacks(hard, 'memory'), provider),
    pressure('Disk', exhausts(hard, 'ephemeral-storage'), provider),
    pressure('PID', exhausts(hard, 'pods'), provider),
    ...(network === 'none' ? [] : [networkVerdict(network)]),
  ];
}

/** Heartbeats are new in each; transition times only where the status changed. Conditions of other writers stay. */
function conditionsOf(hard: Resources, health: Health, known: readonly NodeCondition[], now: string): NodeCondition[] {
  const own = verdicts(hard, health).map((verdict) => {
    const before = known.find((condition) => condition.type === verdict.type);
    const lastTransitionTime = before?.status === verdict.status ? (before.lastTransitionTime ?? now) : now;
    return { ...verdict, lastHeartbeatTime: now, lastTransitionTime } as NodeCondition;
  });
  return [
    ...own,
    ...known.filter((condition) => !own.some(({ type }) => type === condition.type) && !isStale(condition)),
  ];
}

/** Ours of a network that the peering no longer has; the same type by another writer is not ours. */
const isStale = ({ type, reason }: NodeCondition): boolean =>
  type === networkUnavailable && Object.values<string | undefined>(networkReasons).includes(reason);

export function nodeStatus(
  { virtualNode, hostIp, port, version, network, provider }: NodeInput,
  known: NodeStatus | undefined,
  now: string,
): NodeStatus {
  const labels = nodeLabels(virtualNode);
  const hard = Object.fromEntries(Object.entries(hardOf(virtualNode)).map(([key, value]) => [key, String(value)]));
  return {
    capacity: hard,
    allocatable: hard,
    conditions: conditionsOf(hard, { network, provider }, known?.conditions ?? [], now),
    // No Hostname: API servers prefer it by default, and no DNS knows this name.
    addresses: [{ type: 'InternalIP', address: hostIp }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
    nodeInfo: {
      architecture: labels['kubernetes.io/arch'] ?? '',
      operatingSystem: labels['kubernetes.io/os'] ?? '',
      kubeletVersion: version,
      bootID: '',
      containerRuntimeVersion: '',
      kernelVersion: '',
      kubeProxyVersion: '',
      machineID: '',
      osImage: '',
      systemUUID: '',
    },
    ...(virtualNode.spec.images?.length ? { images: virtualNode.spec.images } : {}),
  } as NodeStatus;
}

/** Merge patch of the status; undefined when only heartbeats would move and none is due. */
export function nodeStatusPatch(
  known: NodeStatus | undefined,
  want: NodeStatus,
  heartbeatDue: boolean,
): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const key of ['capacity', 'allocatable'] as const) {
    const resources = resourcePatch(known?.[key] as Texts | undefined, (want[key] ?? {}) as Texts);
    if (Object.keys(resources).length) patch[key] = resources;
  }
  for (const key of ['addresses', 'daemonEndpoints', 'images'] as const) {
    if (!sameContent(known?.[key], want[key])) patch[key] = want[key] ?? null;
  }
  const wantedInfo = want.nodeInfo as unknown as Texts;
  const info = mapPatch(known?.nodeInfo as unknown as Texts | undefined, wantedInfo, []);
  if (Object.keys(info).length) patch.nodeInfo = info;
  if (heartbeatDue || !sameContent(withoutHeartbeats(known), withoutHeartbeats(want)))
    patch.conditions = want.conditions;
  return Object.keys(patch).length ? patch : undefined;
}

const resourcePatch = (have: Texts | undefined, want: Texts): Record<string, string | null> =>
  mapPatch(have, want, Object.keys(have ?? {}));

const withoutHeartbeats = (status: NodeStatus | undefined): unknown =>
  [...(status?.conditions ?? [])]
    .map(({ lastHeartbeatTime: _, ...rest }) => rest)
    .sort((a, b) => a.type.localeCompare(b.type));

export const isReady = (node: Node | undefined): boolean =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
