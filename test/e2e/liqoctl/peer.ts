/** `liqoctl peer`, `create resourceslice`, `unpeer`, `force unpeer`, and `cordon|uncordon|drain|activate` (docs/design/control-plane.md#what-does-liqoctl-need). */
import { namespaces } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, refOf } from '#shared/domain/kube-object.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type TenantCondition, tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { authenticate, unauthenticate } from './authenticate.ts';
import { type ConnectFlags, networkConnect, networkReset } from './network.ts';
import {
  clusterIdOf,
  createOrUpdate,
  createWaits,
  peerLabel,
  type Target,
  tenantNamespace,
  theOne,
  type Waited,
  type Waits,
} from './requests.ts';

export interface PeerFlags extends Omit<ConnectFlags, 'wait'> {
  readonly resources: Readonly<Record<string, string>>;
  /** Which of the two runs the server gateway; the provider unless told. */
  readonly serverLocation: 'Provider' | 'Consumer';
  readonly inBand: boolean;
}

const defaults = { serviceType: 'LoadBalancer', port: 51_840, mtu: 1_340 } as const;
const [peerTimeoutMs, unpeerTimeoutMs] = [600_000, 120_000];

/** Resolves with what was waited for, and how long. */
export async function peer(
  consumer: Target,
  provider: Target,
  flags: Partial<PeerFlags> = {},
): Promise<readonly Waited[]> {
  const waits = createWaits(peerTimeoutMs, consumer.pollMs);
  const { resources = {}, serverLocation = 'Provider', inBand = false, ...link } = flags;
  const [client, server] = serverLocation === 'Provider' ? [consumer, provider] : [provider, consumer];
  await networkConnect(client, server, { ...defaults, ...link, wait: true }, waits);
  await authenticate(consumer, provider, waits, { inBand });
  const providerId = await clusterIdOf(provider);
  const warning = await createResourceSlice(consumer, providerId, { name: providerId, resources }, waits);
  if (warning !== undefined) throw new Error(warning);
  return waits.waited;
}

export interface SliceFlags {
  readonly name: string;
  readonly resources: Readonly<Record<string, string>>;
  /** False: `--no-virtual-node`. */
  readonly virtualNode?: boolean;
}

/** Resolves with the warning that liqoctl would print, if any: Resources has to be accepted when Authentication is. */
export async function createResourceSlice(
  consumer: Target,
  providerId: string,
  { name, resources, virtualNode = true }: SliceFlags,
  waits: Waits,
): Promise<string | undefined> {
  const namespace = await tenantNamespace(consumer, providerId);
  const wanted: ResourceSlice = {
    apiVersion: apiVersionOf(resourceSlices),
    kind: 'ResourceSlice',
    metadata: {
      name,
      namespace,
      labels: { 'liqo.io/replication': 'true', 'liqo.io/remoteID': providerId, [peerLabel]: providerId },
      ...(virtualNode ? { annotations: { 'liqo.io/create-virtual-node': 'true' } } : {}),
    },
    spec: { class: 'default', providerClusterID: providerId, resources: { ...resources } },
  };
  const slice = await createOrUpdate(consumer.api, resourceSlices, wanted, 'spec');
  const read = () => consumer.api.get(resourceSlices, refOf(slice));
  const accepted = async (type: string): Promise<boolean> =>
    ((await read())?.status?.conditions ?? []).some((one) => one.type === type && one.status === 'Accepted');
  await waits.until('slice Authentication', () => accepted('Authentication'));
  return (await accepted('Resources')) ? undefined : 'the tenant or the resourceslice may be cordoned';
}

export interface UnpeerFlags {
  readonly deleteNamespaces?: boolean;
}

export async function unpeer(
  consumer: Target,
  provider: Target,
  { deleteNamespaces = false }: UnpeerFlags = {},
): Promise<readonly Waited[]> {
  const waits = createWaits(unpeerTimeoutMs, consumer.pollMs);
  const providerId = await clusterIdOf(provider);
  const foreign = await theOne(consumer.api, foreignClusters, undefined, `${peerLabel}=${providerId}`);
  if (foreign === undefined) throw new Error(`ForeignCluster of ${providerId} not found`);
  const isBidirectional = foreign.status?.role === 'ConsumerAndProvider';
  if (isBidirectional && deleteNamespaces) throw new Error('cannot delete the namespaces of a bidirectional peering');
  const ofSlices = { labelSelector: `liqo.io/replication=true,liqo.io/remoteID=${providerId}` };
  for (const slice of await consumer.api.list(resourceSlices, ofSlices))
    await consumer.api.delete(resourceSlices, refOf(slice));
  await waits.until('slices gone', async () => (await consumer.api.list(resourceSlices, ofSlices)).length === 0);
  const ofNodes = { labelSelector: `${peerLabel}=${providerId}` };
  for (const node of await consumer.api.list(virtualNodes, ofNodes))
    await consumer.api.delete(virtualNodes, refOf(node));
  await waits.until('virtual nodes gone', async () => (await consumer.api.list(virtualNodes, ofNodes)).length === 0);
  await unauthenticate(consumer, provider);
  if (!isBidirectional) await networkReset(consumer, provider);
  if (deleteNamespaces) await removeNamespaces(consumer, provider, waits);
  return waits.waited;
}

async function removeNamespaces(consumer: Target, provider: Target, waits: Waits): Promise<void> {
  const [consumerId, providerId] = await Promise.all([clusterIdOf(consumer), clusterIdOf(provider)]);
  const both = [
    { api: consumer.api, ref: { name: await tenantNamespace(consumer, providerId) } },
    { api: provider.api, ref: { name: await tenantNamespace(provider, consumerId) } },
  ];
  // One after the other: that of the consumer is gone before that of the provider is touched.
  for (const { api, ref } of both) {
    await api.delete(namespaces, ref);
    await waits.until(`namespace ${ref.name} gone`, async () => (await api.get(namespaces, ref)) === undefined);
  }
}

/** Local only: nothing is asked of the peer, and nothing is cleaned there. */
export async function forceUnpeer(target: Target, peerId: string, deadlineMs: number): Promise<void> {
  const waits = createWaits(deadlineMs, target.pollMs);
  const foreign = await theOne(target.api, foreignClusters, undefined, `${peerLabel}=${peerId}`);
  if (foreign === undefined) throw new Error(`ForeignCluster of ${peerId} not found`);
  const dead = { metadata: { annotations: { 'liqo.io/foreign-cluster-permanently-unreachable': 'true' } } };
  await target.api.mergePatch(foreignClusters, refOf(foreign), dead);
  const ref = { name: await tenantNamespace(target, peerId) };
  await target.api.delete(namespaces, ref);
  await waits.until('namespace gone', async () => (await target.api.get(namespaces, ref)) === undefined);
}

/** False: liqoctl would only warn. */
export async function setTenantCondition(
  { api }: Target,
  name: string,
  wanted: TenantCondition,
  onlyFrom?: TenantCondition,
): Promise<boolean> {
  const found = await api.list(tenants, { fieldSelector: `metadata.name=${name}` });
  const [tenant] = found;
  if (found.length !== 1 || tenant === undefined) throw new Error(`${found.length} tenants are named ${name}`);
  if (onlyFrom !== undefined && tenant.spec.tenantCondition !== onlyFrom) return false;
  await api.update(tenants, { ...tenant, spec: { ...tenant.spec, tenantCondition: wanted } });
  return true;
}

/** `cordon resourceslice` and `uncordon resourceslice`. */
export async function cordonSlice(target: Target, name: string, peerId: string, isCordoned: boolean): Promise<void> {
  const ref = { namespace: await tenantNamespace(target, peerId), name };
  const slice = await target.api.get(resourceSlices, ref);
  if (slice === undefined) throw new Error(`ResourceSlice ${name} not found`);
  const { 'liqo.io/cordon': _, ...annotations } = slice.metadata.annotations ?? {};
  const wanted = isCordoned ? { ...annotations, 'liqo.io/cordon': 'true' } : annotations;
  await target.api.update(resourceSlices, { ...slice, metadata: { ...slice.metadata, annotations: wanted } });
}
