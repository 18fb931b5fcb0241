/** Everything that a peering leaves in a cluster, as text that is the same whenever the state is the same: no time, uid, version, random secret. */
import type { KubeApi } from '#kube/model/types.ts';
import {
  certificateSigningRequests,
  clusterRoleBindings,
  deployments,
  namespaces,
  nodes,
  roleBindings,
  secrets,
  services,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';

const builtIn: readonly ResourceType[] = [
  certificateSigningRequests,
  clusterRoleBindings,
  deployments,
  namespaces,
  nodes,
  roleBindings,
  secrets,
  services,
];

/** Chosen by the API server, by chance or by the clock. */
const volatile = new Set([
  'uid',
  'creationTimestamp',
  'resourceVersion',
  'managedFields',
  'generation',
  'observedGeneration',
  'lastTransitionTime',
  'clusterIP',
  'clusterIPs',
  'networking.isthmus.dev/vni',
  'networking.isthmus.dev/applied',
  'isthmus.dev/issued-at',
  'deployment.kubernetes.io/revision',
  // Signed again each time.
  'signedCRT',
  // Of a link, measured as long as it lasts.
  'latency',
  'lastHandshakeTime',
  // Of the broker, whenever it was told something.
  'lastExchangeTime',
  'packetLoss',
  'peerEndpoint',
  // Of virtual nodes.
  'lastHeartbeatTime',
  'daemonEndpoints',
  // Of Deployments: how far the controller-manager is.
  'conditions',
]);

/** In these, `ip` is one address out of a range: IPAM moves on, so that an address that was let go is not given away at once. */
const granted = new Set(['IP', 'InternalFabric']);

const isOurs = ({ kind, metadata }: KubeObject): boolean => {
  // Which key a peer has outlives the peering with it.
  if (kind === trustedPeers.kind) return false;
  if (metadata.labels?.['liqo.io/remote-cluster-id'] !== undefined) return true;
  if (allKinds.some((one) => one.kind === kind)) return true;
  return metadata.namespace?.startsWith('liqo-tenant-') === true;
};

const withoutValues = (object: KubeObject): KubeObject => {
  if (object.kind !== 'Secret') return object;
  const { data = {} } = object as KubeObject & { data?: Record<string, string> };
  return { ...object, data: Object.keys(data).sort() } as KubeObject;
};

/** Conditions of our own kinds count, those of built-in kinds do not. */
function textOf(object: KubeObject): string {
  const isCustom = allKinds.some((one) => one.kind === object.kind);
  return JSON.stringify(
    withoutValues(object),
    (key, value: unknown) => {
      if (key === 'ip' && granted.has(object.kind)) return 'granted';
      // The cluster's key, and what was signed of it: as much by chance as what a Secret holds.
      if (key === 'own' && object.kind === 'PeeringLock') return 'signed';
      // Of a node: learned from its first gateway, and kept.
      if (key === 'status' && object.kind === 'InternalNode') return undefined;
      if (volatile.has(key) && !(isCustom && key === 'conditions')) return undefined;
      return value !== null && typeof value === 'object' && !Array.isArray(value) ? sorted(value) : value;
    },
    1,
  );
}

const sorted = (value: object): object =>
  Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));

/** By `KIND NAMESPACE/NAME`. */
export async function stateOf(api: KubeApi): Promise<Readonly<Record<string, string>>> {
  const lists = await Promise.all([...allKinds, ...builtIn].map((type) => api.list(type as ResourceType<KubeObject>)));
  const objects = lists.flat().filter(isOurs);
  const entries = objects.map((one): [string, string] => [
    `${one.kind} ${one.metadata.namespace ?? ''}/${one.metadata.name}`,
    textOf(one),
  ]);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

type States = readonly Readonly<Record<string, string>>[];

/** One entry for each object that is not the same in both, cluster by cluster, with the first line that differs. */
export function differences(actual: States = [], wanted: States = []): string[] {
  return wanted.flatMap((one, index) => {
    const other = actual[index] ?? {};
    const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();
    return keys.flatMap((key) => {
      const [is, should] = [other[key], one[key]];
      if (is === should) return [];
      const lines = (is ?? 'absent').split('\n');
      const line = lines.findIndex((text, at) => text !== (should ?? 'absent').split('\n')[at]);
      return [`${key}: ${lines[line]?.trim()} instead of ${(should ?? 'absent').split('\n')[line]?.trim()}`];
    });
  });
}
