/**
 * A malicious consumer: everything that its two identities can send to the provider's API server. Under all of it, nothing of the provider
 * or of other consumers changes, and its own pods stay within its quota. `HOSTILE_PODS=10000` for the long run.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import {
  clusterRoles,
  configMaps,
  namespaces,
  nodes,
  pods,
  roleBindings,
  secrets,
  services,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { container, guest, identity, inParallel, origin, shadow } from './hosted-consumers.ts';

const attempts = Number(process.env.HOSTILE_PODS ?? 1_000);
const granted = 50;

let under: WebhookCluster;
let admin: KubeApi;
/** The virtual kubelet's identity, and that of the consumer's control plane. */
let kubelet: KubeApi;
let controlPlane: KubeApi;
let innocent: KubeApi;
const stop = new AbortController();

/** The object of attempt `i`; only the first and the last of them may ever be stored. */
function attack(i: number): ShadowPod {
  const name = `mad-${i}`;
  const variants: readonly (() => ShadowPod)[] = [
    () => shadow('apps-cons', name),
    () => shadow('apps-cons', name, { containers: [{ ...container, securityContext: { privileged: true } }] }),
    () => shadow('apps-cons', name, { containers: [container], volumes: [{ name: 'root', hostPath: { path: '/' } }] }),
    () => shadow('apps-cons', name, { containers: [container], hostNetwork: true, nodeName: 'worker' }),
    () => shadow('apps-cons', name, { containers: [container], priorityClassName: 'system-node-critical' }),
    () => shadow('apps-other', name, undefined, origin('other')),
    () => shadow('kube-system', name),
    () => shadow('apps-cons', name, undefined, origin('other')),
    () => shadow('apps-cons', name, { containers: ['not a container'], tolerations: 'all' }),
    () => shadow('apps-cons', name, { containers: [{ ...container, resources: { requests: { cpu: '-5' } } }] }),
    () => shadow('apps-cons', name, { containers: [{ ...container, resources: { requests: { cpu: '1e9' } } }] }),
    () => shadow('apps-cons', name, undefined, { ...origin('cons'), 'liqo.io/creator-user': 'slice-other' }),
  ];
  return (variants[i % variants.length] ?? variants[0])?.() as ShadowPod;
}

/** Everything outside of the consumer's own two namespaces, without what time changes. */
async function others(): Promise<Record<string, string>> {
  const own = new Set(['apps-cons', 'liqo-tenant-cons']);
  const kinds: readonly ResourceType[] = [
    ...[pods, secrets, configMaps, namespaces, nodes, roleBindings, clusterRoles],
    ...[shadowPods, quotas, resourceSlices, namespaceMaps],
  ] as never;
  const seen: Record<string, string> = {};
  for (const kind of kinds) {
    for (const object of await admin.list(kind as ResourceType<KubeObject>)) {
      const { metadata, ...rest } = object as KubeObject & Record<string, unknown>;
      if (own.has(metadata.namespace ?? metadata.name)) continue;
      const { labels, annotations, deletionTimestamp, uid } = metadata;
      const key = `${kind.kind} ${metadata.namespace ?? ''}/${metadata.name}`;
      seen[key] = JSON.stringify({ ...rest, labels, annotations, deletionTimestamp, uid });
    }
  }
  return seen;
}

beforeAll(async () => {
  under = await startWebhookCluster();
  admin = under.cluster.api;
  for (const role of remoteRoles()) await admin.create(clusterRoles, role);
  const resources = { cpu: '100', memory: '100Gi', pods: String(granted) };
  for (const consumer of ['cons', 'other'] as const)
    await guest(under, { consumer, slice: `slice-${consumer}`, resources });
  kubelet = await identity(under, ['slice-cons', 'cons'], stop.signal);
  controlPlane = await identity(under, ['cons', 'liqo.io'], stop.signal);
  innocent = await identity(under, ['slice-other', 'other'], stop.signal);
  await admin.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'plain', name: 'of-the-provider' },
    spec: { containers: [{ name: 'app', image: 'app:1' }] },
  } as never);
  await until(() => innocent.create(shadowPods, shadow('apps-other', 'quiet', undefined, origin('other'))));
  await until(async () => {
    expect(await admin.get(pods, { namespace: 'apps-other', name: 'quiet' })).toBeDefined();
    const shadowPod = await admin.get(shadowPods, { namespace: 'apps-other', name: 'quiet' });
    expect(shadowPod?.status?.phase).toBe('Pending');
  });
  await until(() => kubelet.list(shadowPods, { namespace: 'apps-cons' }));
  await until(() => controlPlane.list(resourceSlices, { namespace: 'liqo-tenant-cons' }));
  // A controller-manager that has just started still gathers the rules of its roles and gives every namespace its authority.
  const looks: string[] = [];
  await until(async () => {
    looks.push(JSON.stringify(await others()));
    await systemClock.sleep(1_000);
    expect(looks.length > 1 && looks.at(-1) === looks.at(-2)).toBe(true);
  });
}, 900_000);
afterAll(async () => {
  stop.abort();
  await under?.stop();
});

test(`B059 B060 B063 B071 B128 of ${attempts} hostile ShadowPods only as many get a pod as the quota holds, and no other consumer notices`, async () => {
  const before = await others();
  const refusals = new Map<string, number>();
  const stored: string[] = [];
  const attacking = inParallel(attempts, async (i) => {
    const object = attack(i);
    try {
      await kubelet.create(shadowPods, object);
      stored.push(object.metadata.name);
    } catch (error) {
      const code = codeOf(error) ?? String(error);
      refusals.set(code, (refusals.get(code) ?? 0) + 1);
    }
  });
  let isOver = false;
  const attacked = attacking.finally(() => {
    isOver = true;
  });
  await innocent.create(shadowPods, shadow('apps-other', 'meanwhile', undefined, origin('other')));
  await until(async () => expect(await admin.get(pods, { namespace: 'apps-other', name: 'meanwhile' })).toBeDefined());
  const wasOver = isOver;
  await attacked;
  expect(wasOver, "the innocent pod was made after the last of the attacker's requests").toBe(false);
  expect(await innocent.delete(shadowPods, { namespace: 'apps-other', name: 'meanwhile' })).toBe(true);
  await until(async () =>
    expect(await admin.get(pods, { namespace: 'apps-other', name: 'meanwhile' })).toBeUndefined(),
  );

  // Some of so many requests may come to nothing for want of time: that is the attacker's loss.
  const expected = ['kube_forbidden', 'kube_invalid', 'kube_unreachable', 'kube_failed', 'kube_throttled'];
  expect([...refusals.keys()].filter((code) => !expected.includes(code))).toEqual([]);
  expect(stored.length).toBeLessThanOrEqual(granted);
  const mine = await admin.list(shadowPods, { namespace: 'apps-cons' });
  expect(mine).toHaveLength(granted);
  expect(new Set(mine.map(({ metadata }) => metadata.labels?.['liqo.io/creator-user']))).toEqual(
    new Set(['slice-cons']),
  );
  await until(async () => expect(await admin.list(pods, { namespace: 'apps-cons' })).toHaveLength(granted));
  expect(await others()).toEqual(before);
});

const forbidden = /kube_forbidden|kube_invalid/;
const inApps = (name: string) => ({ namespace: 'apps-cons', name });
const inTenant = (name: string) => ({ namespace: 'liqo-tenant-cons', name });

test.each<{ readonly what: string; readonly act: () => Promise<unknown> }>([
  {
    what: 'makes a Pod itself',
    act: () =>
      kubelet.create(pods, {
        ...shadow('apps-cons', 'p'),
        apiVersion: 'v1',
        kind: 'Pod',
        spec: { containers: [container] },
      } as never),
  },
  {
    what: 'changes a Pod made for it',
    act: () => kubelet.mergePatch(pods, inApps('mad-0'), { metadata: { labels: { a: 'b' } } }),
  },
  { what: 'deletes a Pod made for it', act: () => kubelet.delete(pods, inApps('mad-0')) },
  {
    what: 'forges the status of its ShadowPod',
    act: () =>
      kubelet.mergePatch(shadowPods, inApps('mad-0'), { status: { phase: 'Succeeded' } }, { subresource: 'status' }),
  },
  {
    what: 'grows a ShadowPod after admission',
    act: () => kubelet.mergePatch(shadowPods, inApps('mad-0'), { spec: { pod: { hostNetwork: true } } }),
  },
  {
    what: 'calls its ShadowPod that of another',
    act: () => kubelet.mergePatch(shadowPods, inApps('mad-0'), { metadata: { labels: origin('other') } }),
  },
  {
    what: 'raises its Quota',
    act: () => kubelet.mergePatch(quotas, inTenant('slice-cons'), { spec: { resources: { pods: '9999' } } }),
  },
  {
    what: 'raises its Quota as control plane',
    act: () => controlPlane.mergePatch(quotas, inTenant('slice-cons'), { spec: { resources: { pods: '9999' } } }),
  },
  {
    what: 'forges the grant of its slice',
    act: () =>
      controlPlane.mergePatch(
        resourceSlices,
        inTenant('here'),
        { status: { resources: { cpu: '999' } } },
        { subresource: 'status' },
      ),
  },
  {
    what: 'lifts a cordon',
    act: () =>
      controlPlane.mergePatch(resourceSlices, inTenant('here'), {
        metadata: { annotations: { 'liqo.io/cordon': null } },
      }),
  },
  {
    what: 'lifts a drain',
    act: () =>
      controlPlane.mergePatch(resourceSlices, inTenant('here'), {
        metadata: { annotations: { 'isthmus.dev/drain': null } },
      }),
  },
  {
    what: 'poses as another consumer',
    act: () =>
      controlPlane.mergePatch(resourceSlices, inTenant('here'), {
        metadata: { labels: { 'liqo.io/originID': 'other' } },
      }),
  },
  {
    what: 'forges what it was given as namespaces',
    act: () =>
      controlPlane.mergePatch(
        namespaceMaps,
        inTenant('here'),
        { status: { currentMapping: {} } },
        { subresource: 'status' },
      ),
  },
  {
    what: "takes the address of the provider's API server for a Service of its own",
    act: () =>
      kubelet.create(services, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { namespace: 'apps-cons', name: 'greedy' },
        spec: { ports: [{ port: 443 }], externalIPs: ['10.96.0.1'] },
      } as never),
  },
  { what: "reads the provider's Secrets", act: () => kubelet.list(secrets, { namespace: 'liqo' }) },
  { what: "reads another consumer's ShadowPods", act: () => kubelet.list(shadowPods, { namespace: 'apps-other' }) },
  {
    what: "deletes another consumer's ShadowPod",
    act: () => kubelet.delete(shadowPods, { namespace: 'apps-other', name: 'quiet' }),
  },
  { what: 'reads nodes', act: () => kubelet.list(nodes) },
  {
    what: 'gives itself rights',
    act: () =>
      kubelet.create(roleBindings, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { namespace: 'apps-cons', name: 'mine' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      }),
  },
])('refused, by the first line of defence, is a consumer that $what', async ({ act }) => {
  const before = await others();
  const code = await act().then(
    () => 'nothing stopped it',
    (error: unknown) => codeOf(error) ?? String(error),
  );
  expect(code).toMatch(forbidden);
  expect(await others()).toEqual(before);
});

test('B054 B055 a consumer that asks for namespaces of others, or that others will make, gets none of them, and they stay as they are', async () => {
  const before = await others();
  const taken = { a: 'kube-system', b: 'plain', c: 'apps-other', d: 'liqo', e: 'liqo-tenant-other', f: 'default' };
  const coveted = {
    g: 'cert-manager',
    h: 'argocd',
    i: 'istio-system',
    j: 'openshift-operators',
    k: 'monitoring',
    l: 'shop',
  };
  const wanted: Record<string, string> = { ...taken, ...coveted };
  await controlPlane.mergePatch(namespaceMaps, inTenant('here'), { spec: { desiredMapping: wanted } });
  const map = await until(async () => {
    const found = await admin.get(namespaceMaps, inTenant('here'));
    expect(Object.keys(wanted).filter((key) => found?.status?.currentMapping?.[key]?.phase === undefined)).toEqual([]);
    return found;
  });
  const phases = Object.keys(wanted).map((key) => map?.status?.currentMapping?.[key]?.phase);
  expect(new Set(phases)).toEqual(new Set(['CreationLoopBackOff']));
  expect(await others()).toEqual(before);
});
