/** Turns the objects of a peering into what the broker may know: a closed selection per kind, never a private key, token or kubeconfig. */
import type * as z from 'zod';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { isthmusNetworkAnnotation } from '#shared/domain/network-keys.ts';
import {
  type DesiredSet,
  mostUnfit,
  type ObservedObject,
  type ObservedSet,
  type Refusal,
} from '#shared/schema/protocol/agent-protocol.ts';
import {
  isObservedKind,
  type ObservedData,
  type ObservedKind,
  readData,
  unknownLatency,
} from '#shared/schema/protocol/observed-data.ts';

type Json = Record<string, unknown>;
type Loose = KubeObject & { spec?: Json; status?: Json; data?: Json };

function pick<F extends string>(from: Json | undefined, ...fields: F[]): { readonly [K in F]?: unknown } {
  return Object.fromEntries(fields.flatMap((field) => (from?.[field] === undefined ? [] : [[field, from[field]]]))) as {
    readonly [K in F]?: unknown;
  };
}

/** Values are as the cluster has them: `readData` is what makes them what the schema says. */
type Selected<K extends ObservedKind> = { readonly [F in keyof ObservedData<K>]: unknown };

const selections: { readonly [K in ObservedKind]: (object: Loose) => Selected<K> } = {
  Namespace: () => ({}),
  Secret: (o) => pick(o.data, 'signedNonce', 'csr', 'publicKey', 'succession'),
  Tenant: (o) => ({
    ...pick(o.status, 'tenantNamespace', 'conditions'),
    ...authParams(o.status),
    ...pick(o.spec, 'tenantCondition'),
  }),
  Identity: (o) => ({
    kubeconfigReady: typeof (o.status?.kubeconfigSecretRef as Json | undefined)?.name === 'string',
    signedCRT: (o.spec?.authParams as Json | undefined)?.signedCRT,
  }),
  ResourceSlice: (o) => ({ ...pick(o.status, 'conditions', 'resources'), spec: pick(o.spec, 'class', 'resources') }),
  VirtualNode: (o) => pick(o.status, 'conditions'),
  NamespaceMap: () => ({}),
  Configuration: (o) => pick(o.status, 'remote', 'conditions'),
  GatewayServer: (o) => ({ ...pick(o.status, 'endpoint', 'conditions'), candidates: candidatesOf(o) }),
  GatewayClient: (o) => ({ ...pick(o.status, 'conditions'), candidates: candidatesOf(o) }),
  PublicKey: () => ({}),
  Connection: (o) => ({
    ...pick(o.status, 'value', 'mtu', 'peerEndpoint', 'lastHandshakeTime', 'packetLoss'),
    ...latencyOf(o.status),
  }),
  Node: (o) => {
    const conditions =
      (o.status?.conditions as { type: string; status: string; reason?: string; message?: string }[] | undefined) ?? [];
    const ready = conditions.find((c) => c.type === 'Ready');
    return { ready: ready?.status === 'True', ...pick({ ...ready }, 'reason', 'message') };
  },
};

/** Where the peer may find this side, as the gateway's controller says. */
function candidatesOf({ metadata }: Loose): string[] {
  try {
    const list: unknown = JSON.parse(metadata.annotations?.[isthmusNetworkAnnotation.candidates] ?? '[]');
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

const latencyOf = (status: Json | undefined): { readonly latency?: unknown } => {
  const value = (status?.latency as Json | undefined)?.value;
  return value === undefined ? {} : { latency: value };
};

/** Of a Connection: what always changes a little. */
const volatileFields: ReadonlySet<string> = new Set(['lastHandshakeTime', 'latency', 'packetLoss']);

/** The set without what always changes a little: a difference here is news. That a latency is known at last is. */
export const newsOf = (set: ObservedSet): ObservedSet => ({
  ...set,
  objects: set.objects.map((object) =>
    object.kind === 'Connection' ? { ...object, data: steady(object.data) } : object,
  ),
});

const steady = (data: ObservedObject['data']): ObservedObject['data'] => ({
  ...Object.fromEntries(Object.entries(data).filter(([field]) => !volatileFields.has(field))),
  isMeasured: data.latency !== undefined && data.latency !== unknownLatency,
});

/** Certificates, the CA and the URL are public; AWS keys, which Liqo also keeps here, are not. */
const authParams = (status: Json | undefined): { readonly authParams?: unknown } =>
  status?.authParams === undefined
    ? {}
    : { authParams: pick(status.authParams as Json, 'ca', 'signedCRT', 'apiServer', 'proxyURL') };

export function observedObject(kind: string, apiVersion: string, object: KubeObject): ObservedObject {
  const { metadata } = object;
  const { data, unfit } = isObservedKind(kind) ? readData(kind, selections[kind](object)) : { data: {}, unfit: [] };
  return {
    apiVersion,
    kind,
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    name: metadata.name,
    uid: metadata.uid ?? '',
    ...(metadata.generation === undefined ? {} : { generation: metadata.generation }),
    ...(metadata.deletionTimestamp === undefined ? {} : { deleting: true }),
    data,
    ...(unfit.length === 0 ? {} : { unfit: unfit.slice(0, mostUnfit).map((one) => ({ ...one })) }),
  };
}

export const observedSet = (
  set: Pick<DesiredSet, 'peering' | 'role'>,
  appliedRevision: number,
  objects: readonly ObservedObject[],
  refusals: readonly z.infer<typeof Refusal>[],
  ended = false,
): ObservedSet => ({
  peering: set.peering,
  role: set.role,
  appliedRevision,
  objects: [...objects].sort((a, b) => (`${a.kind}/${a.name}` < `${b.kind}/${b.name}` ? -1 : 1)),
  refusals: [...refusals],
  ...(ended ? { ended } : {}),
});
