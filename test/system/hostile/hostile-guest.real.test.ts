/** A consumer whose pods and objects are hostile, each of a shape that the provider could mistake for ordinary work. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import { clusterRoles, nodes, pods } from '#shared/domain/core-kinds.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { container, guest, identity, shadow } from './hosted-consumers.ts';

const year = 31_536_000;
const inApps = (name: string) => ({ namespace: 'apps-cons', name });

let under: WebhookCluster;
let admin: KubeApi;
let kubelet: KubeApi;
const stop = new AbortController();

const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'nothing stopped it',
    (error: unknown) => messageOf(error),
  );
const podNamed = (name: string): Promise<Pod> =>
  until(async () => {
    const found = await admin.get(pods, inApps(name));
    expect(found).toBeDefined();
    return found as Pod;
  });

beforeAll(async () => {
  under = await startWebhookCluster();
  admin = under.cluster.api;
  for (const role of remoteRoles()) await admin.create(clusterRoles, role);
  const resources = { cpu: '2', memory: '2Gi', pods: '2' };
  await guest(under, { consumer: 'cons', slice: 'slice-cons', resources, limitsEnforcement: 'Soft' });
  kubelet = await identity(under, ['slice-cons', 'cons'], stop.signal);
  await until(() => kubelet.list(shadowPods, { namespace: 'apps-cons' }));
  await admin.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } } as Node);
}, 900_000);
afterAll(async () => {
  stop.abort();
  await under?.stop();
});

test('a pod with a year to end gets ten minutes, and its share is free only when it is gone', async () => {
  const pod = { containers: [container], terminationGracePeriodSeconds: year };
  await until(() => kubelet.create(shadowPods, shadow('apps-cons', 'stays', pod)));
  expect((await podNamed('stays')).spec?.terminationGracePeriodSeconds).toBe(600);
  const target = { kind: 'Node', name: 'worker' };
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: inApps('stays'), target };
  await admin.post(pods, inApps('stays'), 'binding', binding);

  // The node has no kubelet, so the pod stays as one does that ignores SIGTERM.
  await kubelet.delete(shadowPods, inApps('stays'));
  await until(async () => {
    const { deletionGracePeriodSeconds } = (await podNamed('stays')).metadata;
    expect(deletionGracePeriodSeconds).toBe(600);
  });
  await until(() => kubelet.create(shadowPods, shadow('apps-cons', 'second')));
  expect(await refusal(kubelet.create(shadowPods, shadow('apps-cons', 'third')))).toMatch(
    /pods: requested 1, free 0 of 2 \(quota_exceeded\)/,
  );
  await admin.delete(pods, inApps('stays'), { gracePeriodSeconds: 0 });
  await kubelet.create(shadowPods, shadow('apps-cons', 'third'));
  for (const name of ['second', 'third']) {
    await kubelet.delete(shadowPods, inApps(name));
    await until(async () => expect(await admin.get(pods, inApps(name))).toBeUndefined());
  }
});

test('a pod that requests nothing gets requests, and they count', async () => {
  const silent = { containers: [{ name: 'app', image: 'app:1' }] };
  await kubelet.create(shadowPods, shadow('apps-cons', 'silent', silent));
  const { spec } = await podNamed('silent');
  expect(spec?.containers[0]?.resources?.requests).toEqual({ cpu: '25m', memory: '64Mi' });
  const rest = { containers: [{ ...container, resources: { requests: { cpu: '2', memory: '1Mi' } } }] };
  expect(await refusal(kubelet.create(shadowPods, shadow('apps-cons', 'rest', rest)))).toMatch(
    /cpu: requested 2, free 1975m of 2 \(quota_exceeded\)/,
  );
});

test.each([
  ['volumes[0].nfs', { volumes: [{ name: 'v', nfs: { server: '10.0.0.1', path: '/' } }] }],
  ['volumes[0].csi', { volumes: [{ name: 'v', csi: { driver: 'any' } }] }],
  ['volumes[0].flexVolume', { volumes: [{ name: 'v', flexVolume: { driver: 'any' } }] }],
  ['nodeSelector', { nodeSelector: { 'node-role.kubernetes.io/control-plane': '' } }],
  ['schedulerName', { schedulerName: 'mine' }],
  ['runtimeClassName', { runtimeClassName: 'mine' }],
])('a pod with %s is refused by field, value and what is accepted', async (field, more) => {
  const said = await refusal(
    kubelet.create(shadowPods, shadow('apps-cons', 'hostile', { containers: [container], ...more })),
  );
  expect(said).toContain(`spec.pod.${field}: `);
  expect(said).toMatch(/accepted.* \(sandbox_refused\)/);
});

test('a pod that tolerates every taint tolerates none that the provider did not offer', async () => {
  const pod = { containers: [container], tolerations: [{ operator: 'Exists' }] };
  await kubelet.create(shadowPods, shadow('apps-cons', 'tolerant', pod));
  const keys = (await podNamed('tolerant')).spec?.tolerations?.map(({ key }) => key);
  expect(keys).toEqual(expect.arrayContaining(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']));
  expect(keys).not.toContain(undefined);
});
