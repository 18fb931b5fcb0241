/** `liqoctl authenticate` and `unauthenticate`, step by step, and the commands they are made of (docs/design/control-plane.md#what-does-liqoctl-need). */
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { signWith } from '#agent/pki/cluster-keys.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, refOf, type Secret } from '#shared/domain/kube-object.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';
import { configurationOf, isConfigured } from './network.ts';
import {
  clusterIdOf,
  createOrUpdate,
  ensureTenantNamespace,
  peerLabel,
  type Target,
  tenantNamespace,
  theOne,
  type Waits,
} from './requests.ts';

const base64 = (data: Uint8Array | string): string => Buffer.from(data).toString('base64');
const text = (secret: Secret | undefined, key: string): string | undefined => {
  const value = secret?.data?.[key];
  return value === undefined || value === '' ? undefined : Buffer.from(value, 'base64').toString();
};

/** `liqoctl create nonce`: resolves with the nonce. */
export async function createNonce(provider: Target, consumerId: string, waits: Waits): Promise<string> {
  const namespace = await ensureTenantNamespace(provider, consumerId);
  const labels = { 'liqo.io/nonce': 'true', [peerLabel]: consumerId };
  const selector = `liqo.io/nonce=true,${peerLabel}=${consumerId}`;
  if ((await theOne(provider.api, secrets, namespace, selector)) === undefined)
    await provider.api.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'liqo-nonce', namespace, labels },
    });
  return waits.until('nonce', async () => text(await theOne(provider.api, secrets, namespace, selector), 'nonce'));
}

export interface TenantFlags {
  readonly nonce: string;
  readonly remoteNamespace: string;
  readonly proxyUrl?: string | undefined;
}

/** `liqoctl generate tenant`. */
export async function generateTenant(
  consumer: Target,
  providerId: string,
  { nonce, remoteNamespace, proxyUrl }: TenantFlags,
  waits: Waits,
): Promise<Tenant> {
  const id = await clusterIdOf(consumer);
  const namespace = await ensureTenantNamespace(consumer, providerId);
  const selector = `liqo.io/signed-nonce=true,${peerLabel}=${providerId}`;
  const known = await theOne(consumer.api, secrets, namespace, selector);
  if (known === undefined)
    await consumer.api.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: 'liqo-signed-nonce',
        namespace,
        labels: { 'liqo.io/signed-nonce': 'true', [peerLabel]: providerId },
      },
      stringData: { nonce },
    } as unknown as Secret);
  else if (text(known, 'nonce') !== nonce) throw new Error('nonce already present with a different value');
  const signedNonce = await waits.until('signed nonce', async () => {
    const found = await theOne(consumer.api, secrets, namespace, selector);
    return found?.data?.signedNonce === undefined ? undefined : Buffer.from(found.data.signedNonce, 'base64');
  });
  const keys = await consumer.api.get(secrets, { namespace: consumer.liqoNamespace, name: 'authentication-keys' });
  const [privateKey, publicKey] = [text(keys, 'privateKey') ?? '', text(keys, 'publicKey') ?? ''];
  // The signature is that of the key: what was signed is what liqoctl was given.
  if (!Buffer.from(signWith(privateKey, Buffer.from(nonce))).equals(signedNonce))
    throw new Error('signed nonce differs');
  return {
    apiVersion: apiVersionOf(tenants),
    kind: 'Tenant',
    metadata: { name: id, namespace: remoteNamespace, labels: { [peerLabel]: id } },
    spec: {
      clusterID: id,
      publicKey: base64(publicKey),
      csr: base64(buildCertificateRequest({ commonName: id, organization: 'liqo.io' }, privateKey)),
      signature: base64(signedNonce),
      ...(proxyUrl === undefined ? {} : { proxyURL: proxyUrl }),
    } as Tenant['spec'],
  };
}

/** Where the consumer reaches the provider's proxy: its address there, in the range that stands for that one here. */
async function proxyUrlOf(consumer: Target, provider: Target, providerId: string): Promise<string> {
  const ref = { namespace: provider.liqoNamespace, name: 'api-server-proxy' };
  const ip = (await provider.api.get(networkKinds.ips, ref))?.status?.ip;
  if (ip === undefined) throw new Error('no IP found: is the networking disabled?');
  const namespace = await tenantNamespace(consumer, providerId);
  const found = await configurationOf({ ...consumer, id: '', namespace }, providerId);
  if (!isConfigured(found)) throw new Error('the Configuration is not configured');
  for (const kind of ['pod', 'external'] as const) {
    const [remote, local] = [found?.spec.remote.cidr[kind] ?? [], found?.status?.remote?.cidr[kind] ?? []];
    const at = remote.findIndex((range) => new IpRange(range).has(ip));
    const seenAs = local[at];
    if (at >= 0 && seenAs !== undefined) return `http://${new IpRange(seenAs).same(ip)}:8118`;
  }
  throw new Error(`${ip} is in no range of the Configuration`);
}

/** Of IPv4, with the few operations that liqoctl needs. */
class IpRange {
  readonly #base: number;
  readonly #mask: number;
  constructor(cidr: string) {
    const [address = '', bits = '32'] = cidr.split('/');
    this.#mask = bits === '0' ? 0 : (-1 << (32 - Number(bits))) >>> 0;
    this.#base = (numberOf(address) & this.#mask) >>> 0;
  }
  has(ip: string): boolean {
    return (numberOf(ip) & this.#mask) >>> 0 === this.#base;
  }
  /** The address at the same place in this range. */
  same(ip: string): string {
    const value = (this.#base | (numberOf(ip) & ~this.#mask)) >>> 0;
    return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
  }
}
const numberOf = (ip: string): number => ip.split('.').reduce((sum, part) => ((sum << 8) | Number(part)) >>> 0, 0);

/** `liqoctl generate identity`: to be applied at the consumer. */
export async function generateIdentity(provider: Target, consumerId: string, namespace: string): Promise<Identity> {
  const providerId = await clusterIdOf(provider);
  const remote = await tenantNamespace(provider, consumerId);
  const { status } = (await theOne(provider.api, tenants, remote, `${peerLabel}=${consumerId}`)) ?? {};
  if (status?.authParams === undefined || !status.tenantNamespace)
    throw new Error(`the Tenant of ${consumerId} has no authParams yet`);
  return {
    apiVersion: apiVersionOf(identities),
    kind: 'Identity',
    metadata: { name: `controlplane-${providerId}`, namespace, labels: { [peerLabel]: providerId } },
    spec: {
      clusterID: providerId,
      type: 'ControlPlane',
      authParams: status.authParams,
      namespace: status.tenantNamespace,
    },
  };
}

/** `liqoctl get nonce`. */
export async function getNonce(provider: Target, consumerId: string): Promise<string> {
  const namespace = await tenantNamespace(provider, consumerId);
  const found = await theOne(provider.api, secrets, namespace, `liqo.io/nonce=true,${peerLabel}=${consumerId}`);
  const nonce = text(found, 'nonce');
  if (nonce === undefined) throw new Error(`no nonce for ${consumerId}`);
  return nonce;
}

/** `liqoctl get kubeconfig`. */
export async function getKubeconfig(consumer: Target, identityName: string, providerId: string): Promise<string> {
  const namespace = await tenantNamespace(consumer, providerId);
  const identity = await consumer.api.get(identities, { namespace, name: identityName });
  const { name } = identity?.status?.kubeconfigSecretRef ?? {};
  if (!name) throw new Error(`Identity ${identityName} has no kubeconfig`);
  const kubeconfig = text(await consumer.api.get(secrets, { namespace, name }), 'kubeconfig');
  if (kubeconfig === undefined) throw new Error(`Secret ${name} has no kubeconfig`);
  return kubeconfig;
}

export interface AuthenticateFlags {
  readonly inBand?: boolean;
}

export async function authenticate(
  consumer: Target,
  provider: Target,
  waits: Waits,
  { inBand = false }: AuthenticateFlags = {},
): Promise<void> {
  const [consumerId, providerId] = await Promise.all([clusterIdOf(consumer), clusterIdOf(provider)]);
  const namespace = await ensureTenantNamespace(consumer, providerId);
  const remoteNamespace = await ensureTenantNamespace(provider, consumerId);
  const nonce = await createNonce(provider, consumerId, waits);
  const proxyUrl = inBand ? await proxyUrlOf(consumer, provider, providerId) : undefined;
  const tenant = await generateTenant(consumer, providerId, { nonce, remoteNamespace, proxyUrl }, waits);
  await createOrUpdate(provider.api, tenants, tenant, 'all');
  await waits.until('Tenant status', async () => {
    const found = await theOne(provider.api, tenants, remoteNamespace, `${peerLabel}=${consumerId}`);
    return found?.status?.authParams !== undefined && found.status.tenantNamespace ? found : undefined;
  });
  await createOrUpdate(consumer.api, identities, await generateIdentity(provider, consumerId, namespace), 'all');
  await waits.until('Identity status', async () => {
    const all = await consumer.api.list(identities, { labelSelector: `${peerLabel}=${providerId}` });
    const own = all.filter(({ spec }) => spec.type === 'ControlPlane');
    if (own.length > 1) throw new Error('more than one ControlPlane identity');
    return (own[0]?.status?.kubeconfigSecretRef?.name ?? '') !== '';
  });
}

export async function unauthenticate(consumer: Target, provider: Target): Promise<void> {
  const [consumerId, providerId] = await Promise.all([clusterIdOf(consumer), clusterIdOf(provider)]);
  const labelSelector = `liqo.io/replication=true,liqo.io/remoteID=${providerId}`;
  if ((await consumer.api.list(resourceSlices, { labelSelector })).length > 0)
    throw new Error('ResourceSlices are left');
  const own = (await consumer.api.list(identities, { labelSelector: `${peerLabel}=${providerId}` })).find(
    ({ spec }) => spec.type === 'ControlPlane',
  );
  if (own !== undefined) await consumer.api.delete(identities, refOf(own));
  const remote = await tenantNamespace(provider, consumerId);
  const tenant = await theOne(provider.api, tenants, remote, `${peerLabel}=${consumerId}`);
  if (tenant !== undefined) await provider.api.delete(tenants, refOf(tenant));
}
