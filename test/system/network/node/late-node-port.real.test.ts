/** A gateway that is dialled at its NodePort before the cluster's proxy leads that anywhere, by a client that never pauses. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../harness/eventually.ts';
import { type Netns, NetnsFixture } from '../../../harness/netns.ts';
import { nodePort, openUnderlay, peer, TestCluster, type TestPod } from '../../../harness/netns-cluster.ts';
import { configure, type Endpoint, endpoint, isUp, keep, openSwitch, port, wireGuardPort } from './ends.ts';

const clusters = new NetnsFixture();
let net: Netns;
beforeAll(async () => {
  net = await openSwitch(clusters);
});
afterAll(() => clusters.close());

const passes = async (ms: number): Promise<void> => {
  const from = performance.now();
  await eventually(`${ms} ms have passed`, () => performance.now() - from >= ms, { withinMs: ms + 5_000 });
};

/** The host with the tunnel's public address also has a NodePort, as a Liqo peer may: nothing of ours runs there. */
const proxyOf = (gate: Netns) =>
  gate.nft(`table ip proxy {
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    udp dport ${nodePort} redirect to :${wireGuardPort}
  }
}`);
/** As on every node: kube-proxy and the CNI have it follow connections. */
const following = (gate: Netns) =>
  gate.nft('table ip follow { chain prerouting { type filter hook prerouting priority 0; ct state new counter; }; }');

test('a peer whose node port leads somewhere only 10 s after dialling began is reached soon after: from another port', async () => {
  const stop = new AbortController();
  const both: { readonly client: Endpoint; readonly server: Endpoint; readonly link: Promise<void> }[] = [];
  for (const moves of [true, false]) {
    const [client, server] = [await endpoint(clusters, net, 'none', 1), await endpoint(clusters, net, 'none', 2)];
    await following(server.gate);
    await configure(server, client);
    await configure(client, server);
    const candidates = () => [`${server.publicAddress}:${nodePort}`];
    both.push({ client, server, link: keep(client, server, { candidates, moves }, stop.signal) });
  }
  const [moving, staying] = both;
  const began = performance.now();
  await passes(10_000);
  for (const { server } of both) await proxyOf(server.gate);
  await eventually('Connected', isUp(moving!.client), { withinMs: 30_000 });
  console.log(`up ${Math.round(performance.now() - began)} ms after dialling began`);
  expect(await moving!.client.netns.who(moving!.server.tunnelAddress, port)).toBe(moving!.client.tunnelAddress);
  // A client that stays at one port would be answered only after a long enough silence.
  await passes(6_000);
  expect(isUp(staying!.client)()).toBe(false);
  stop.abort();
  await Promise.all(both.map(({ link }) => link));
});

const untranslated = async (netns: Netns): Promise<string> =>
  (
    await netns.exec(
      'conntrack',
      ...['-L', '-p', 'udp', '--orig-port-dst', `${nodePort}`, '--reply-port-src', `${nodePort}`],
    )
  ).trim();

/** A dials the second node of B, whose proxy does not know the port yet. WireGuard repeats its handshakes every 5 s by itself. */
async function dialled(entrances: number[]) {
  const underlay = await openUnderlay(clusters);
  const [a, b] = [new TestCluster(clusters, underlay, 'a', 1), new TestCluster(clusters, underlay, 'b', 2)];
  for (const cluster of [a, b]) for (let i = 0; i < 2; i++) await cluster.addNode();
  const atA = await a.addLink('to-b', a.nodes[0]!, 'client', b, { pods: 71, external: 72 });
  const atB = await b.addLink('to-a', b.nodes[0]!, 'server', a, { pods: 71, external: 72 });
  peer(atB, atA, `${b.nodes[1]!.ip}:${nodePort}`);
  const [from, to] = [await a.addPod(a.nodes[1]!, 5), await b.addPod(b.nodes[1]!, 7)] as const;
  await to.netns.serve(port);
  b.entrances = entrances;
  await b.program();
  await a.program();
  const close = async () => void (await Promise.all([a.close(), b.close()]));
  return { b, atB, node: b.nodes[1]!.netns, from, to, close };
}
const answers = (from: TestPod, to: TestPod) => () => from.netns.who(to.ip.replace('10.200.', '10.71.'), port);

test('a node that knows the port of its gateway lets nothing settle there: soon after the proxy the link is up', async () => {
  const { b, atB, node, from, to, close } = await dialled([nodePort]);
  await passes(10_000);
  expect(await untranslated(node)).toBe('');
  await b.exposeNodePort(atB);
  const began = performance.now();
  // The next handshake is at most 5 s away; what had settled would keep it away for ever.
  await eventually('it answers', answers(from, to), { withinMs: 20_000 });
  console.log(`up ${Math.round(performance.now() - began)} ms after the proxy`);
  await close();
});

test('what settled before the node knew the port keeps the link down, and goes as soon as it knows', async () => {
  const { b, atB, node, from, to, close } = await dialled([]);
  await eventually('a flow of the node itself, as it seems', async () => (await untranslated(node)) !== '');
  await b.exposeNodePort(atB);
  await passes(12_000);
  await expect(answers(from, to)()).rejects.toThrow();
  b.entrances = [nodePort];
  await b.program();
  await eventually('it answers', answers(from, to), { withinMs: 20_000 });
  await close();
});
