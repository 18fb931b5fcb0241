/** What a consumer can do at its provider: everything it may, listed by the API server itself, and refusals of all that it must not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { remoteBinding } from '#agent/offloading/provider/namespaces/objects.ts';
import { signedNonceData } from '#agent/peering/nonce/controllers.ts';
import { generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import {
  certificateSigningRequests,
  clusterRoleBindings,
  configMaps,
  events,
  namespaces,
  nodes,
  pods,
  roleBindings,
  secrets,
} from '#shared/domain/core-kinds.ts';
import { annotation, label, name } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import { peer } from './broker-part.ts';
import { type Pair, startPair } from './clusters.ts';

interface RulesReview {
  status: {
    resourceRules: { verbs: string[]; apiGroups?: string[]; resources?: string[]; resourceNames?: string[] }[];
  };
}

const tenantNs = name.tenantNamespace('rome');
const mapped = 'shop-rome';
let pair: Pair;
let controlPlane: KubeApi;
let virtualKubelet: KubeApi;

/** As the consumer holds them: from its kubeconfig Secrets. */
async function login(identity: string): Promise<KubeApi> {
  const ref = { namespace: name.tenantNamespace('milan'), name: name.kubeconfigSecret(identity) };
  const kubeconfig = (await pair.consumer.api.get(secrets, ref))?.data?.kubeconfig ?? '';
  return createKubeApi(await connectKubeconfig(Buffer.from(kubeconfig, 'base64').toString()), {
    clock: pair.clock,
    log: silentLog,
  });
}

/** `verb group/resource`, sorted, without what every authenticated user may ask about itself. */
async function rights(api: KubeApi, namespace: string): Promise<string[]> {
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } };
  const { status } = await api.postPath<RulesReview>('/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', review);
  const all = status.resourceRules.flatMap(({ verbs, apiGroups = [], resources = [] }) =>
    verbs.flatMap((verb) => apiGroups.flatMap((group) => resources.map((resource) => `${verb} ${group}/${resource}`))),
  );
  return [...new Set(all)]
    .filter((right) => !/ (authorization|authentication)\.k8s\.io\/selfsubject/.test(right))
    .sort();
}

beforeAll(async () => {
  pair = await startPair();
  await peer(pair);
  const consumer = { mapKey: `${tenantNs}/milan`, origin: 'rome', tenantNamespace: tenantNs };
  const namespace = (named: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: named } });
  await pair.provider.api.create(namespaces, namespace(mapped));
  await pair.provider.api.create(namespaces, namespace('private'));
  await pair.provider.api.create(roleBindings, remoteBinding(mapped, consumer));
  controlPlane = await login(name.controlPlaneIdentity('milan'));
  virtualKubelet = await login(name.sliceIdentity('milan'));
  await eventually(
    'the rights to be known to the authorizer',
    async () => (await rights(virtualKubelet, mapped)).length > 0,
  );
}, 900_000);
afterAll(async () => await pair?.stop());

const full = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
const each = (verbs: readonly string[], ...resources: string[]): string[] =>
  resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`));

describe('the control plane of a consumer', () => {
  test('has these rights in its tenant namespace and no others', async () => {
    expect(await rights(controlPlane, tenantNs)).toEqual(
      each(
        full,
        'authentication.liqo.io/renews',
        'authentication.liqo.io/resourceslices',
        'offloading.liqo.io/namespacemaps',
      ).sort(),
    );
  });

  test.each([mapped, 'private', 'default', 'kube-system', 'liqo'])('has none in namespace %s', async (namespace) => {
    expect(await rights(controlPlane, namespace)).toEqual([]);
  });
});

describe('a virtual node of a consumer', () => {
  test('has these rights in a mapped namespace and no others', async () => {
    const read = ['get', 'list', 'watch'];
    expect(await rights(virtualKubelet, mapped)).toEqual(
      [
        ...each(full, 'offloading.liqo.io/shadowpods', 'offloading.liqo.io/shadowendpointslices'),
        ...each(full, '/configmaps', '/secrets', '/services', '/persistentvolumeclaims', 'networking.k8s.io/ingresses'),
        ...each(read, '/pods', '/events', 'metrics.k8s.io/pods'),
        ...each(['get'], '/pods/log'),
        ...each(['create', 'delete', 'get', 'patch'], 'snapshot.storage.k8s.io/volumesnapshots'),
        ...each(['create', 'get'], '/pods/exec', '/pods/attach', '/pods/portforward'),
      ].sort(),
    );
  });

  test.each([tenantNs, 'private', 'default', 'kube-system', 'liqo'])('has none in namespace %s', async (namespace) => {
    expect(await rights(virtualKubelet, namespace)).toEqual([]);
  });
});

const pod = (namespace: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace },
  spec: { containers: [{ name: 'c', image: 'i' }] },
});
const shadow = (namespace: string): ShadowPod => ({
  apiVersion: 'offloading.liqo.io/v1beta1',
  kind: 'ShadowPod',
  metadata: { name: 's', namespace },
  spec: { pod: { containers: [{ name: 'c', image: 'i' }] } } as unknown as ShadowPod['spec'],
});
const accepted = { status: { conditions: [{ type: 'Resources', status: 'Accepted' }], resources: { cpu: '1000' } } };
const sliceRef = { namespace: tenantNs, name: 'milan' };
const binding = (namespace: string) => ({
  ...remoteBinding(namespace, { mapKey: 'x/y', origin: 'rome', tenantNamespace: tenantNs }),
  metadata: { name: 'mine', namespace },
});

describe.each([
  ['control plane', () => controlPlane],
  ['virtual node', () => virtualKubelet],
])('with the certificate of the %s', (_who, api) => {
  test.each<readonly [string, (api: KubeApi) => Promise<unknown>]>([
    ['create a Pod in a mapped namespace', (a) => a.create(pods, pod(mapped))],
    ['create a Pod in the tenant namespace', (a) => a.create(pods, pod(tenantNs))],
    ['accept its own slice', (a) => a.mergePatch(resourceSlices, sliceRef, accepted, { subresource: 'status' })],
    [
      'write the status of a ShadowPod',
      (a) =>
        a.mergePatch(
          shadowPods,
          { namespace: mapped, name: 's' },
          { status: { phase: 'Running' } },
          { subresource: 'status' },
        ),
    ],
    [
      'write the status of a Pod',
      (a) =>
        a.mergePatch(
          pods,
          { namespace: mapped, name: 'p' },
          { status: { phase: 'Failed' } },
          { subresource: 'status' },
        ),
    ],
    [
      'change its Tenant',
      (a) => a.mergePatch(tenants, { namespace: tenantNs, name: 'rome' }, { spec: { tenantCondition: 'Active' } }),
    ],
    ['see its Quota', (a) => a.list(quotas, { namespace: tenantNs })],
    ['read the nonce or a certificate', (a) => a.list(secrets, { namespace: tenantNs })],
    ['read secrets of the system', (a) => a.list(secrets, { namespace: 'kube-system' })],
    ['read the key of the provider', (a) => a.get(secrets, { namespace: 'liqo', name: 'authentication-keys' })],
    ['read configuration elsewhere', (a) => a.list(configMaps, { namespace: 'private' })],
    ['list slices of everybody', (a) => a.list(resourceSlices)],
    ['list namespaces', (a) => a.list(namespaces)],
    ['list nodes', (a) => a.list(nodes)],
    ['bind a role in a mapped namespace', (a) => a.create(roleBindings, binding(mapped))],
    ['bind a role in the tenant namespace', (a) => a.create(roleBindings, binding(tenantNs))],
    ['read the ClusterRoleBindings', (a) => a.list(clusterRoleBindings)],
    ['create a ShadowPod elsewhere', (a) => a.create(shadowPods, shadow('private'))],
    ['create a ShadowPod in its tenant namespace', (a) => a.create(shadowPods, shadow(tenantNs))],
  ])('cannot %s', async (_what, attempt) => {
    await expect(attempt(api())).rejects.toMatchObject({ code: 'kube_forbidden' });
  });
});

test('a virtual node can create a ShadowPod where a namespace is mapped', async () => {
  await expect(virtualKubelet.create(shadowPods, shadow(mapped))).resolves.toMatchObject({ kind: 'ShadowPod' });
});

describe('a provider refuses', () => {
  const eventsAbout = async (named: string): Promise<string[]> =>
    (await pair.provider.api.list(events, { namespace: name.tenantNamespace(named) })).map(
      ({ reason, note }) => `${reason}: ${note}`,
    );

  /** A consumer that exists only as its papers. */
  async function present(consumer: string, signature?: string): Promise<void> {
    const namespace = name.tenantNamespace(consumer);
    const labels = { [label.remoteClusterId]: consumer };
    const nonce = toBase64(toBase64('n'.repeat(64)));
    const {
      signedNonce = '',
      csr = '',
      publicKey = '',
    } = signedNonceData({ nonce }, consumer, generateClusterKeys()) ?? {};
    const { api } = pair.provider;
    await api.create(namespaces, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { ...labels, [label.tenantNamespace]: 'true' } },
    });
    await api.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: name.nonceSecret, namespace, labels: { ...labels, [label.nonce]: 'true' } },
      data: { nonce },
    });
    await api.create(tenants, {
      apiVersion: 'authentication.liqo.io/v1beta1',
      kind: 'Tenant',
      metadata: { name: consumer, namespace, labels },
      spec: {
        clusterID: consumer,
        publicKey,
        csr,
        signature: signature ?? signedNonce,
        authzPolicy: 'KeysExchange',
        tenantCondition: 'Active',
      },
    });
  }
  async function expectNothingFor(consumer: string): Promise<void> {
    const tenant = await pair.provider.api.get(tenants, { namespace: name.tenantNamespace(consumer), name: consumer });
    expect(tenant?.status?.authParams).toBeUndefined();
    const labelSelector = `${label.remoteClusterId}=${consumer}`;
    expect(await pair.provider.api.list(roleBindings, { labelSelector })).toEqual([]);
    expect(await pair.provider.api.list(clusterRoleBindings, { labelSelector })).toEqual([]);
    expect(await pair.provider.api.list(certificateSigningRequests, { labelSelector })).toEqual([]);
  }

  test('a consumer whose name already is a user with rights, until that ends', async () => {
    const admin = { metadata: { name: 'turin-is-admin' } };
    await pair.provider.api.create(clusterRoleBindings, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      ...admin,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'turin' }],
    });
    await present('turin');
    await eventually('an explanation', async () =>
      (await eventsAbout('turin')).some((one) => /NameHasRights: .*turin-is-admin.*cluster-admin/.test(one)),
    );
    await expectNothingFor('turin');
    await pair.provider.api.delete(clusterRoleBindings, { name: admin.metadata.name });
    pair.clock.advance(31_000);
    await eventually(
      'its credentials',
      async () =>
        (await pair.provider.api.get(tenants, { namespace: name.tenantNamespace('turin'), name: 'turin' }))?.status
          ?.authParams,
    );
  });

  test('a signature by another key', async () => {
    await present('genoa', toBase64('x'.repeat(64)));
    await eventually('an explanation', async () =>
      (await eventsAbout('genoa')).some((one) => one.startsWith('SignatureVerificationFailed: ')),
    );
    await expectNothingFor('genoa');
  });

  test('to log in where a consumer says, in a namespace that is not a tenant namespace', async () => {
    const labels = { [label.identityType]: 'ControlPlane', [label.remoteClusterId]: 'naples' };
    const annotations = { [annotation.remoteTenantNamespace]: 'anywhere' };
    const kubeconfig = toBase64('server: https://127.0.0.1:1');
    await virtualKubelet.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'trap', namespace: mapped, labels, annotations },
      data: { kubeconfig },
    });
    await eventually(
      'an explanation',
      async () => {
        const all = await pair.provider.api.list(events, { namespace: mapped });
        return all.some(({ note }) => String(note).includes('the tenant namespace of naples'));
      },
      { withinMs: 45_000 },
    );
    expect(
      (await pair.provider.api.get(secrets, { namespace: mapped, name: 'trap' }))?.metadata.finalizers,
    ).toBeUndefined();
    expect(await pair.provider.api.get(foreignClusters, { name: 'naples' })).toBeUndefined();
  });
});
