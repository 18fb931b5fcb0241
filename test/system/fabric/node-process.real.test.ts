/** The node process on real kernels' namespaces and a real API server: links come up, fail over, and survive whatever happens to the process. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '../../harness/eventually.ts';
import { FabricWorld, port } from './world.ts';

const world = new FabricWorld();
/** B's pod as A sees it. */
const view = (): string => world.podB.ip.replace('10.200.', '10.71.');

beforeAll(() => world.open());
afterAll(() => world.close());

test('two node processes bring a link up, with one active replica, its path measured and both nodes known', async () => {
  const began = performance.now();
  for (const node of world.a.nodes) world.startProcess(node);
  const status = await eventually('Connected', async () => {
    const found = await world.connection();
    return found?.value === 'Connected' && found.mtu !== undefined && found;
  });
  console.log(`connected and measured ${Math.round(performance.now() - began)} ms after the start of both processes`);
  expect(status).toMatchObject({ mtu: 1340, peerEndpoint: `${world.b.nodes[1]!.ip}:31820` });
  expect(status.latency?.value).toMatch(/^\d+(ms|μs)$/);
  await eventually('one active replica', () => world.active());
  for (const pod of world.podsA) expect(await pod.netns.who(view(), port)).toMatch(/^10\.71\./);
  const internal = await eventually('nodes know their addresses', async () => {
    const all = await world.cluster.api.list(networkKinds.internalNodes);
    return all.every(({ status: s }) => s?.nodeIP?.local && s.nodeIP.remote) && all;
  });
  expect(internal.map(({ status: s }) => s?.nodeIP)).toEqual(
    world.a.nodes.map(({ bridgeIp, ip }) => ({ local: bridgeIp, remote: ip })),
  );
  expect(internal[0]?.metadata.annotations?.['networking.isthmus.dev/wireguard']).toMatch(/^(kernel|userspace)$/);
});

test('its memory stays small', async () => {
  for (const node of world.a.nodes) {
    const status = readFileSync(`/proc/${world.processes.get(node.name)?.pid}/status`, 'utf8');
    const rss = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    console.log(`node process of ${node.name}: ${rss.toFixed(1)} MiB RSS`);
    expect(rss).toBeLessThan(80);
  }
});
