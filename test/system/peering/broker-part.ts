/** The test in the role of the broker: writes what a broker would, reads what it would be told. */
import { randomBytes } from 'node:crypto';
import type { Applied, KubeApi } from '#kube/model/types.ts';
import {
  certificateSigningRequests,
  clusterRoleBindings,
  namespaces,
  nodes,
  roleBindings,
  secrets,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import {
  annotation,
  authenticationKeysSecret,
  fieldManager,
  isthmusAnnotation,
  isthmusLabel,
  label,
  name,
  systemNamespace,
} from '#shared/domain/liqo-keys.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { Pair } from './clusters.ts';

const quick = { everyMs: 20, withinMs: 60_000 };
const labelsFor = (peer: string, more: Record<string, string> = {}): Record<string, string> => ({
  [isthmusLabel.peering]: 'p_test',
  [label.remoteClusterId]: peer,
  ...more,
});

const apply = <T extends KubeObject>(api: KubeApi, type: ResourceType<T>, object: Applied<T>): Promise<T> =>
  api.apply(type, object, { fieldManager: fieldManager.broker });

const tenantNamespace = (peer: string) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: name.tenantNamespace(peer), labels: labelsFor(peer, { [label.tenantNamespace]: 'true' }) },
});

/** A deleted namespace takes a while: a new peering waits for it, as the channel does. */
async function ensureNamespace(api: KubeApi, peer: string): Promise<void> {
  await eventually(
    `namespace of ${peer}`,
    async () => {
      const made = await apply(api, namespaces, tenantNamespace(peer));
      return made.metadata.deletionTimestamp === undefined;
    },
    quick,
  );
}

const nonceSecret = (nameOf: string, namespace: string, peer: string, mark: string, nonce: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: nameOf, namespace, labels: labelsFor(peer, { [mark]: 'true' }) },
  data: { nonce },
});

/** Exchange 1: nonce to both, slice to the consumer. */
export async function introduce(
  { consumer, provider }: Pair,
  resources: Record<string, string> = { cpu: '2' },
): Promise<void> {
  const nonce = Buffer.from(randomBytes(64).toString('base64')).toString('base64');
  await Promise.all([ensureNamespace(provider.api, consumer.id), ensureNamespace(consumer.api, provider.id)]);
  const [there, here] = [name.tenantNamespace(consumer.id), name.tenantNamespace(provider.id)];
  const known = await provider.api.get(secrets, { namespace: there, name: name.nonceSecret });
  const same = known?.data?.nonce ?? nonce;
  await apply(provider.api, secrets, nonceSecret(name.nonceSecret, there, consumer.id, label.nonce, same));
  await apply(consumer.api, secrets, nonceSecret(name.signedNonceSecret, here, provider.id, label.signedNonce, same));
  await apply(consumer.api, resourceSlices, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: {
      name: provider.id,
      namespace: here,
      labels: labelsFor(provider.id, { [label.replication]: 'true', [label.remoteId]: provider.id }),
      annotations: { [annotation.createVirtualNode]: 'true' },
    },
    spec: { class: 'default', providerClusterID: provider.id, resources },
  });
}

/** Exchange 2: the consumer's signature, request and key to the provider. */
export async function presentTenant({ consumer, provider }: Pair, proxyURL?: string): Promise<void> {
  const signed = await eventually(
    'the consumer to sign the nonce',
    async () => {
      const ref = { namespace: name.tenantNamespace(provider.id), name: name.signedNonceSecret };
      const { signedNonce, csr, publicKey, succession } = (await consumer.api.get(secrets, ref))?.data ?? {};
      const own = (await consumer.api.get(secrets, { namespace: systemNamespace, name: authenticationKeysSecret }))
        ?.data;
      const isCurrent = publicKey === own?.publicKey;
      return isCurrent && signedNonce && csr && publicKey ? { signedNonce, csr, publicKey, succession } : undefined;
    },
    quick,
  );
  const annotations = signed.succession ? { [isthmusAnnotation.keySuccession]: signed.succession } : {};
  await apply(provider.api, tenants, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Tenant',
    metadata: {
      name: consumer.id,
      namespace: name.tenantNamespace(consumer.id),
      labels: labelsFor(consumer.id),
      annotations,
    },
    spec: {
      clusterID: consumer.id,
      publicKey: signed.publicKey,
      csr: signed.csr,
      signature: signed.signedNonce,
      ...(proxyURL === undefined ? {} : { proxyURL }),
    },
  });
}

/** Exchange 3: the provider's credentials to the consumer. */
export async function presentIdentity({ consumer, provider }: Pair): Promise<void> {
  const status = await eventually(
    'the provider to issue credentials',
    async () => {
      const ref = { namespace: name.tenantNamespace(consumer.id), name: consumer.id };
      const found = (await provider.api.get(tenants, ref))?.status;
      return found?.authParams && found.tenantNamespace
        ? { authParams: found.authParams, namespace: found.tenantNamespace }
        : undefined;
    },
    quick,
  );
  await apply(consumer.api, identities, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Identity',
    metadata: {
      name: name.controlPlaneIdentity(provider.id),
      namespace: name.tenantNamespace(provider.id),
      labels: labelsFor(provider.id),
    },
    spec: { clusterID: provider.id, type: 'ControlPlane', ...status },
  });
}

export const virtualNodeAppears = ({ consumer, provider }: Pair): Promise<unknown> =>
  eventually(
    'the VirtualNode to appear',
    () => consumer.api.get(virtualNodes, { namespace: name.tenantNamespace(provider.id), name: provider.id }),
    quick,
  );

export async function peer(pair: Pair, resources?: Record<string, string>): Promise<void> {
  await introduce(pair, resources);
  await presentTenant(pair);
  await presentIdentity(pair);
  await virtualNodeAppears(pair);
}

async function removeAndWait(api: KubeApi, type: ResourceType, ref: ObjectRef): Promise<void> {
  await api.delete(type, ref);
  await eventually(`${type.kind} ${ref.name} to go`, async () => (await api.get(type, ref)) === undefined, quick);
}

/** The consumer gives back first; then the provider forgets it. */
export async function unpeerConsumer({ consumer, provider }: Pair): Promise<void> {
  const namespace = name.tenantNamespace(provider.id);
  await removeAndWait(consumer.api, resourceSlices, { namespace, name: provider.id });
  await removeAndWait(consumer.api, identities, { namespace, name: name.controlPlaneIdentity(provider.id) });
  await removeAndWait(consumer.api, secrets, { namespace, name: name.signedNonceSecret });
  await removeAndWait(consumer.api, namespaces, { name: namespace });
}

export async function unpeerProvider({ consumer, provider }: Pair): Promise<void> {
  const namespace = name.tenantNamespace(consumer.id);
  await removeAndWait(provider.api, tenants, { namespace, name: consumer.id });
  for (const slice of await provider.api.list(resourceSlices, {
    namespace,
    labelSelector: `${label.replicated}=true`,
  })) {
    await removeAndWait(provider.api, resourceSlices, { namespace, name: slice.metadata.name });
  }
  await removeAndWait(provider.api, secrets, { namespace, name: name.nonceSecret });
  await removeAndWait(provider.api, namespaces, { name: namespace });
}

/** Everything of any peering that is left in a cluster, as `Kind name`. */
export async function leftovers(api: KubeApi): Promise<string[]> {
  const custom = [tenants, identities, resourceSlices, renews, quotas, virtualNodes, namespaceMaps, foreignClusters];
  const builtIn = [secrets, roleBindings, clusterRoleBindings, namespaces, certificateSigningRequests];
  const lists = await Promise.all([
    ...custom.map((type) => api.list(type as unknown as ResourceType)),
    ...builtIn.map((type) => api.list(type as unknown as ResourceType, { labelSelector: label.remoteClusterId })),
    api.list(nodes as unknown as ResourceType, { labelSelector: label.type }),
  ]);
  return lists.flat().map((object) => `${object.kind} ${object.metadata.name}`);
}

export const nothingLeft = async ({ consumer, provider }: Pair): Promise<void> => {
  for (const cluster of [consumer, provider]) {
    let left: string[] = [];
    await eventually(
      `nothing left in ${cluster.id}`,
      async () => {
        left = await leftovers(cluster.api);
        if (left.length > 0) throw new Error(left.join(', '));
        return true;
      },
      quick,
    );
  }
};

/** All but the namespaces, whose deletion Kubernetes itself delays by five seconds. */
export async function removePeering({ consumer, provider }: Pair): Promise<void> {
  const here = name.tenantNamespace(provider.id);
  await removeAndWait(consumer.api, resourceSlices, { namespace: here, name: provider.id });
  await removeAndWait(consumer.api, identities, { namespace: here, name: name.controlPlaneIdentity(provider.id) });
  await removeAndWait(consumer.api, secrets, { namespace: here, name: name.signedNonceSecret });
  const there = name.tenantNamespace(consumer.id);
  await removeAndWait(provider.api, tenants, { namespace: there, name: consumer.id });
  for (const type of [resourceSlices, renews] as unknown as ResourceType[]) {
    for (const copy of await provider.api.list(type, { namespace: there, labelSelector: `${label.replicated}=true` })) {
      await removeAndWait(provider.api, type, { namespace: there, name: copy.metadata.name });
    }
  }
  await removeAndWait(provider.api, secrets, { namespace: there, name: name.nonceSecret });
}
