/** What a node process hears of the pods of its cluster, from a real API server. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { customResourceDefinitions as crds, pods } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { customResourceDefinitions } from '#shared/schema/crd.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { type NodeAgentWatch, watchNodeAgentObjects } from './watch.ts';

let server: TestApiServer;
let cluster: Cluster;
let watch: NodeAgentWatch;
const stop = new AbortController();
const heard: string[] = [];
const until = (check: () => unknown) => vi.waitFor(check, { timeout: 30_000, interval: 20 });
const places = () => [...watch.objects().pods].map(({ ip, node }) => `${ip} on ${node}`).sort();
const ref = (name: string) => ({ namespace: 'default', name });

async function makePod(name: string, { labels = {}, hostNetwork = false } = {}): Promise<void> {
  await cluster.api.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...ref(name), labels },
    spec: { nodeName: 'one', hostNetwork, containers: [{ name: 'app', image: 'app:1' }] },
  });
}

const report = (name: string, status: object) =>
  cluster.api.mergePatch(pods, ref(name), { status }, { subresource: 'status' });

beforeAll(async () => {
  server = await startApiServer({ flags: ['--disable-admission-plugins=ServiceAccount'] });
  const deps = { clock: systemClock, log: silentLog };
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, stop.signal);
  for (const definition of customResourceDefinitions()) await cluster.api.create(crds, definition as never);
  for (const kind of allKinds) await until(() => cluster.api.list(kind));
  watch = watchNodeAgentObjects(cluster, stop.signal);
  watch.onChange((what) => heard.push(what));
  await watch.synced(stop.signal);
  watch.needPods(true);
  await until(() => expect(heard).toEqual(['pods']));
}, 300_000);
afterAll(async () => {
  stop.abort();
  await server?.stop();
});

test('a pod is heard of when it has an address and when it has none any more, and not in between', async () => {
  await makePod('plain');
  await report('plain', { phase: 'Pending', podIP: '10.9.0.1', podIPs: [{ ip: '10.9.0.1' }] });
  await until(() => expect(places()).toEqual(['10.9.0.1 on one']));
  await report('plain', { phase: 'Running' });
  await report('plain', { conditions: [{ type: 'Ready', status: 'True' }] });
  await makePod('next');
  await report('next', { phase: 'Running', podIP: '10.9.0.2', podIPs: [{ ip: '10.9.0.2' }] });
  await until(() => expect(places()).toEqual(['10.9.0.1 on one', '10.9.0.2 on one']));
  await report('plain', { phase: 'Succeeded' });
  await until(() => expect(places()).toEqual(['10.9.0.2 on one']));
  expect(heard).toEqual(['pods', 'pods', 'pods', 'pods']);
});

test("pods that run at a peer, and those in their node's network, have no place here", async () => {
  await makePod('away', { labels: { 'liqo.io/shadowPod': 'true' } });
  await makePod('host', { hostNetwork: true });
  for (const name of ['away', 'host'])
    await report(name, { phase: 'Running', podIP: '10.9.0.7', podIPs: [{ ip: '10.9.0.7' }] });
  await makePod('last');
  await report('last', { phase: 'Running', podIP: '10.9.0.8', podIPs: [{ ip: '10.9.0.8' }] });
  await until(() => expect(places()).toContain('10.9.0.8 on one'));
  expect(places()).toEqual(['10.9.0.2 on one', '10.9.0.8 on one']);
});
