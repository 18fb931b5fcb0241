/** What a consumer can do at its provider: everything it may, listed by the API server itself, and refusals of all that it must not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { remoteBinding } from '#agent/controllers/namespace-map/forge.ts';
import { createKubeApi } from '#agent/kube/api.ts';
import { connectKubeconfig } from '#agent/kube/kubeconfig.ts';
import type { KubeApi } from '#agent/kube/types.ts';
import {
  clusterRoleBindings,
  configMaps,
  namespaces,
  nodes,
  pods,
  roleBindings,
  secrets,
} from '#shared/domain/core-kinds.ts';
import { name } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
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
    ['see who has what', (a) => a.list(clusterRoleBindings)],
    ['create a ShadowPod elsewhere', (a) => a.create(shadowPods, shadow('private'))],
    ['create a ShadowPod in its tenant namespace', (a) => a.create(shadowPods, shadow(tenantNs))],
  ])('cannot %s', async (_what, attempt) => {
    await expect(attempt(api())).rejects.toMatchObject({ code: 'kube_forbidden' });
  });
});

test('a virtual node can create a ShadowPod where a namespace is mapped', async () => {
  await expect(virtualKubelet.create(shadowPods, shadow(mapped))).resolves.toMatchObject({ kind: 'ShadowPod' });
});
