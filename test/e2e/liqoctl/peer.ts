/** `liqoctl peer`, `create resourceslice`, `unpeer`, and `cordon|uncordon|drain|activate tenant` (reference/liqo-control-plane.md 3.1, 3.6, 3.9, 3.11). */
import { apiVersionOf, refOf } from '#shared/domain/kube-object.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
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
}

const defaults = { serviceType: 'LoadBalancer', port: 51_840, mtu: 1_340 } as const;
const [peerTimeoutMs, unpeerTimeoutMs] = [600_000, 120_000];

/** Resolves with what was waited for, and how long. */
export async function peer(
  consumer: Target,
  provider: Target,
  flags: Partial<PeerFlags> = {},
): Promise<readonly Waited[]> {
  const waits = createWaits(peerTimeoutMs);
  const { resources = {}, ...link } = flags;
  await networkConnect(consumer, provider, { ...defaults, ...link, wait: true }, waits);
  await authenticate(consumer, provider, waits);
  const providerId = await clusterIdOf(provider);
  const warning = await createResourceSlice(consumer, providerId, providerId, resources, waits);
  if (warning !== undefined) throw new Error(warning);
  return waits.waited;
}

/** Resolves with the warning that liqoctl would print, if any: Resources has to be accepted when Authentication is. */
export async function createResourceSlice(
  consumer: Target,
  name: string,
  providerId: string,
  resources: Readonly<Record<string, string>>,
  waits: Waits,
): Promise<string | undefined> {
  const namespace = await tenantNamespace(consumer, providerId);
  const slice = await createOrUpdate(consumer.api, resourceSlices, {
    apiVersion: apiVersionOf(resourceSlices),
    kind: 'ResourceSlice',
    metadata: {
      name,
      namespace,
      labels: { 'liqo.io/replication': 'true', 'liqo.io/remoteID': providerId, [peerLabel]: providerId },
      annotations: { 'liqo.io/create-virtual-node': 'true' },
    },
    spec: { class: 'default', providerClusterID: providerId, resources: { ...resources } },
  });
  const read = () => consumer.api.get(resourceSlices, refOf(slice));
  const accepted = async (type: string): Promise<boolean> =>
    ((await read())?.status?.conditions ?? []).some((one) => one.type === type && one.status === 'Accepted');
  await waits.until('slice Authentication', () => accepted('Authentication'));
  return (await accepted('Resources')) ? undefined : 'the tenant or the resourceslice may be cordoned';
}

export async function unpeer(consumer: Target, provider: Target): Promise<readonly Waited[]> {
  const waits = createWaits(unpeerTimeoutMs);
  const providerId = await clusterIdOf(provider);
  const foreign = await theOne(consumer.api, foreignClusters, undefined, `${peerLabel}=${providerId}`);
  if (foreign === undefined) throw new Error(`ForeignCluster of ${providerId} not found`);
  const isBidirectional = foreign.status?.role === 'ConsumerAndProvider';
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
  return waits.waited;
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
