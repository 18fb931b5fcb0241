/** What a consumer can do at its provider with the credentials that it holds: asked of the provider's API server for every namespace, and tried. */
import { beforeAll, describe, expect, test } from 'vitest';
import { fromBase64 } from '#agent/pki/pem.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { configMaps, namespaces, nodes, pods, roleBindings, secrets } from '#shared/domain/core-kinds.ts';
import { name } from '#shared/domain/liqo-keys.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { consumer, provider, type Stage } from '../stage.ts';

interface RulesReview {
  readonly status: {
    readonly resourceRules: readonly {
      readonly verbs: readonly string[];
      readonly apiGroups?: readonly string[];
      readonly resources?: readonly string[];
    }[];
  };
}

const tenantNamespace = name.tenantNamespace(consumer);
const mapped = ['abroad', 'a-chosen-name', 'at-home-rome'];

/** `verb group/resource`, without what every authenticated user may ask about itself. */
async function rights(api: KubeApi, namespace: string): Promise<string[]> {
  const { status } = await api.postPath<RulesReview>('/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectRulesReview',
    spec: { namespace },
  });
  const all = status.resourceRules.flatMap(({ verbs, apiGroups = [], resources = [] }) =>
    verbs.flatMap((verb) => apiGroups.flatMap((group) => resources.map((resource) => `${verb} ${group}/${resource}`))),
  );
  const ofItself = / (authorization|authentication)\.k8s\.io\/selfsubject/;
  return [...new Set(all)].filter((right) => !ofItself.test(right)).sort();
}

const written = /^(create|update|patch|delete|deletecollection) /;

export function credentials(on: () => Stage): void {
  describe('with the credentials that the consumer holds', () => {
    const held: Record<string, KubeApi> = {};
    let everywhere: string[] = [];
    beforeAll(async () => {
      for (const [who, identity] of [
        ['control plane', name.controlPlaneIdentity(provider)],
        ['virtual node', name.sliceIdentity(provider)],
      ] as const) {
        const ref = { namespace: name.tenantNamespace(provider), name: name.kubeconfigSecret(identity) };
        const secret = await on().api(consumer).get(secrets, ref);
        held[who] = await on().login(fromBase64(secret?.data?.kubeconfig ?? ''));
      }
      everywhere = (await on().api(provider).list(namespaces)).map(({ metadata }) => metadata.name);
    });

    test('its control plane has rights in its tenant namespace, on three kinds, and nowhere else', async () => {
      for (const namespace of everywhere) {
        const has = await rights(held['control plane']!, namespace);
        if (namespace !== tenantNamespace) expect([namespace, has]).toEqual([namespace, []]);
        else
          expect([...new Set(has.map((right) => right.split(' ')[1]))]).toEqual([
            'authentication.liqo.io/renews',
            'authentication.liqo.io/resourceslices',
            'offloading.liqo.io/namespacemaps',
          ]);
      }
    });

    test('its virtual node has rights in the mapped namespaces and nowhere else', async () => {
      expect(everywhere).toEqual(expect.arrayContaining(mapped));
      for (const namespace of everywhere) {
        const has = await rights(held['virtual node']!, namespace);
        expect([namespace, has.length > 0]).toEqual([namespace, mapped.includes(namespace)]);
      }
    });

    test('neither may write a Pod, a status, a Node, a namespace, a role or anything cluster-wide', async () => {
      for (const [who, api] of Object.entries(held)) {
        for (const namespace of everywhere) {
          const writes = (await rights(api, namespace)).filter((right) => written.test(right));
          const streams = /^create \/pods\/(exec|attach|portforward)$/;
          const wrong = writes.filter(
            (right) =>
              (/ \/pods(\/|$)/.test(right) && !streams.test(right)) ||
              /\/status$|\*|rbac\.|\/nodes|\/namespaces|\/serviceaccounts|certificates\.k8s\.io/.test(right),
          );
          expect([who, namespace, wrong]).toEqual([who, namespace, []]);
        }
      }
    });

    const shadowPod = { namespace: 'abroad', name: 'any' };
    const slice = { namespace: tenantNamespace, name: provider };
    const aPod = (namespace: string) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'intruder', namespace },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    });
    test.each<readonly [string, (api: KubeApi) => Promise<unknown>]>([
      ['create a Pod in a mapped namespace', (api) => api.create(pods, aPod('abroad'))],
      ['create a Pod in its tenant namespace', (api) => api.create(pods, aPod(tenantNamespace))],
      ['delete a Pod that runs for it', (api) => api.delete(pods, { namespace: 'abroad', name: 'any' })],
      [
        'write the status of its ShadowPod',
        (api) => api.mergePatch(shadowPods, shadowPod, { status: { phase: 'Failed' } }, { subresource: 'status' }),
      ],
      [
        'grant itself more',
        (api) =>
          api.mergePatch(resourceSlices, slice, { status: { resources: { cpu: '99' } } }, { subresource: 'status' }),
      ],
      [
        'change its Tenant',
        (api) => api.mergePatch(tenants, { namespace: tenantNamespace, name: consumer }, { spec: { clusterID: 'x' } }),
      ],
      ['read its Quota', (api) => api.list(quotas, { namespace: tenantNamespace })],
      ['see nodes', (api) => api.list(nodes)],
      ['see namespaces', (api) => api.list(namespaces)],
      ['read secrets of its tenant namespace', (api) => api.list(secrets, { namespace: tenantNamespace })],
      ['read secrets of the agent', (api) => api.list(secrets, { namespace: 'liqo' })],
      ['read all secrets', (api) => api.list(secrets)],
      ['read configuration of the system', (api) => api.list(configMaps, { namespace: 'kube-system' })],
      ['see pods of others', (api) => api.list(pods, { namespace: 'kube-system' })],
      ['read the RoleBindings', (api) => api.list(roleBindings, { namespace: 'abroad' })],
    ])('neither can %s', async (_what, attempt) => {
      for (const api of Object.values(held)) {
        await expect(attempt(api)).rejects.toMatchObject({ code: 'kube_forbidden' });
      }
    });
  });
}
