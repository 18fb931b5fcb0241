/** `liqoctl authenticate` and `unauthenticate`, step by step (reference/liqo-control-plane.md 3.4, 3.5). */
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { signWith } from '#agent/pki/cluster-keys.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, refOf, type Secret } from '#shared/domain/kube-object.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';
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

/** `liqoctl generate tenant`. */
export async function generateTenant(
  consumer: Target,
  providerId: string,
  nonce: string,
  remoteNamespace: string,
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
    } as Tenant['spec'],
  };
}

export async function authenticate(consumer: Target, provider: Target, waits: Waits): Promise<void> {
  const [consumerId, providerId] = await Promise.all([clusterIdOf(consumer), clusterIdOf(provider)]);
  const namespace = await ensureTenantNamespace(consumer, providerId);
  const remoteNamespace = await ensureTenantNamespace(provider, consumerId);
  const nonce = await createNonce(provider, consumerId, waits);
  await createOrUpdate(
    provider.api,
    tenants,
    await generateTenant(consumer, providerId, nonce, remoteNamespace, waits),
  );
  const { status } = await waits.until('Tenant status', async () => {
    const found = await theOne(provider.api, tenants, remoteNamespace, `${peerLabel}=${consumerId}`);
    return found?.status?.authParams !== undefined && found.status.tenantNamespace ? found : undefined;
  });
  await createOrUpdate(consumer.api, identities, {
    apiVersion: apiVersionOf(identities),
    kind: 'Identity',
    metadata: { name: `controlplane-${providerId}`, namespace, labels: { [peerLabel]: providerId } },
    spec: {
      clusterID: providerId,
      type: 'ControlPlane',
      authParams: status?.authParams ?? {},
      namespace: status?.tenantNamespace ?? '',
    },
  });
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
