/** Turns the objects of a peering into what the broker may know: a closed selection per kind, never a private key, token or kubeconfig. */
import type * as z from 'zod';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { isthmusNetworkAnnotation } from '#shared/domain/network-keys.ts';
import type { DesiredSet, ObservedObject, ObservedSet, Refusal } from '#shared/schema/protocol/agent-protocol.ts';

type Json = Record<string, unknown>;
type Loose = KubeObject & { spec?: Json; status?: Json; data?: Json };

const pick = (from: Json | undefined, ...keys: string[]): Json => {
  const out: Json = {};
  for (const key of keys) if (from?.[key] !== undefined) out[key] = from[key];
  return out;
};

const selections: Readonly<Record<string, (object: Loose) => Json>> = {
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

const latencyOf = (status: Json | undefined): Json => {
  const value = (status?.latency as Json | undefined)?.value;
  return value === undefined ? {} : { latency: value };
};

/** Of a Connection: what always changes a little. */
const volatileFields: ReadonlySet<string> = new Set(['lastHandshakeTime', 'latency', 'packetLoss']);

/** The set without what always changes a little: a difference here is news. */
export const newsOf = (set: ObservedSet): ObservedSet => ({
  ...set,
  objects: set.objects.map((object) =>
    object.kind === 'Connection'
      ? { ...object, data: Object.fromEntries(Object.entries(object.data).filter(([key]) => !volatileFields.has(key))) }
      : object,
  ),
});

/** Certificates, the CA and the URL are public; AWS keys, which Liqo also keeps here, are not. */
const authParams = (status: Json | undefined): Json =>
  status?.authParams === undefined
    ? {}
    : { authParams: pick(status.authParams as Json, 'ca', 'signedCRT', 'apiServer', 'proxyURL') };

export function observedObject(kind: string, apiVersion: string, object: KubeObject): ObservedObject {
  const { metadata } = object;
  return {
    apiVersion,
    kind,
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    name: metadata.name,
    uid: metadata.uid ?? '',
    ...(metadata.generation === undefined ? {} : { generation: metadata.generation }),
    ...(metadata.deletionTimestamp === undefined ? {} : { deleting: true }),
    data: selections[kind]?.(object) ?? {},
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
