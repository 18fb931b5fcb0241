/** Two links in a row with nothing of ours in them: what wireguard-go itself leaves of one link's throughput on this machine. */
import { userspaceTunnel } from '#agent/network/kernel/wireguard.ts';
import { eventually } from '#test/harness/eventually.ts';
import { connect, type Netns, type NetnsFixture } from '#test/harness/netns.ts';
import { startWireGuard, wireGuardKeys } from '#test/harness/netns-cluster.ts';

const name = 'liqo-tunnel';
const listenPort = 51_820;
/** As gateways have it. */
const mtu = 1_340;

export interface BareChain {
  readonly from: Netns;
  /** At the end of the first link, and at the end of the second. */
  readonly near: string;
  readonly far: string;
}

/** Four namespaces with a wireguard-go each: from - hub's first - hub's second - to. */
export async function openBareChain(clusters: NetnsFixture, port: number): Promise<BareChain> {
  const [from, first, second, to] = [
    await clusters.add('bare-from'),
    await clusters.add('bare-first'),
    await clusters.add('bare-second'),
    await clusters.add('bare-to'),
  ];
  await cable(from, first, '192.0.2');
  await cable(first, second, '198.51.100');
  await cable(second, to, '203.0.113');
  await link(clusters, [from, first], '192.0.2', '10.99.1');
  await link(clusters, [second, to], '203.0.113', '10.99.2');
  for (const netns of [first, second]) await netns.sysctl({ 'net.ipv4.ip_forward': 1 });
  await from.ip([`route add 10.99.2.0/24 dev ${name}`]);
  await first.ip(['route add 10.99.2.0/24 via 198.51.100.2']);
  await second.ip(['route add 10.99.1.0/24 via 198.51.100.1']);
  await to.ip([`route add 10.99.1.0/24 dev ${name}`]);
  const [near, far] = ['10.99.1.2', '10.99.2.2'];
  for (const netns of [first, to]) await netns.serve(port);
  for (const address of [near, far])
    await eventually(`${address} answers`, () => from.who(address, port), { withinMs: 10_000 });
  return { from, near, far };
}

async function cable(a: Netns, b: Netns, range: string): Promise<void> {
  const [toB, toA] = [b, a].map(({ name }) => name.replace('bare', 'to')) as [string, string];
  await connect({ netns: a, device: toB }, { netns: b, device: toA });
  await a.ip([`address add ${range}.1/24 dev ${toB}`]);
  await b.ip([`address add ${range}.2/24 dev ${toA}`]);
}

async function link(
  clusters: NetnsFixture,
  ends: readonly [Netns, Netns],
  underlay: string,
  range: string,
): Promise<void> {
  const keys = ends.map(() => wireGuardKeys());
  for (const [at, netns] of ends.entries()) {
    const [own, other] = [keys[at], keys[1 - at]];
    if (own === undefined || other === undefined) continue;
    await startWireGuard(netns);
    const address = `${range}.${at + 1}/24`;
    await netns.ip([
      `address add ${address} dev ${name}`,
      `link set dev ${name} mtu ${mtu}`,
      `link set dev ${name} up`,
    ]);
    await userspaceTunnel(netns.pid, name).configure({
      name,
      implementation: 'userspace',
      mtu,
      address,
      listenPort,
      privateKeyFile: clusters.file(own.privateKey),
      peer: { publicKey: other.publicKey, endpoint: `${underlay}.${2 - at}:${listenPort}` },
    });
  }
}
