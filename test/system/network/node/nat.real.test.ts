/** Tunnel endpoints behind NAT boxes (reference 10.4), with real wireguard-go and the dialling of the node process. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../harness/eventually.ts';
import { type Netns, NetnsFixture } from '../../../harness/netns.ts';
import { configure, type Endpoint, endpoint, isUp, keep, openSwitch, port, wireGuardPort } from './ends.ts';

const clusters = new NetnsFixture();
let net: Netns;
beforeAll(async () => {
  net = await openSwitch(clusters);
});
afterAll(() => clusters.close());

let stop: AbortController | undefined;
let links: Promise<void>[] = [];
afterEach(async () => {
  stop?.abort();
  await Promise.all(links);
});

/** Both ends dial what the other says of itself: its public address with its own port, and its inner one. A is the client. */
async function dialEachOther(a: Endpoint, b: Endpoint): Promise<void> {
  await configure(a, b);
  await configure(b, a);
  stop = new AbortController();
  const { signal } = stop;
  const candidatesOf = (peer: Endpoint) => () => [
    `192.168.1.10:${wireGuardPort}`,
    `${peer.publicAddress}:${wireGuardPort}`,
  ];
  links = [
    keep(a, b, { candidates: candidatesOf(b), moves: true }, signal),
    keep(b, a, { candidates: candidatesOf(a) }, signal),
  ];
}

test.each([
  { a: 'port-preserving', b: 'port-preserving' },
  { a: 'fully random', b: 'none' },
  { a: 'none', b: 'port-preserving' },
] as const)('A behind $a and B behind $b: the tunnel comes up, both ways', async ({ a, b }) => {
  const [one, two] = [await endpoint(clusters, net, a, 1), await endpoint(clusters, net, b, 2)];
  const began = performance.now();
  await dialEachOther(one, two);
  for (const own of [one, two]) await eventually('Connected', isUp(own), { withinMs: 45_000 });
  console.log(`${a} / ${b}: up after ${Math.round(performance.now() - began)} ms`);
  expect(await one.netns.who(two.tunnelAddress, port)).toBe(one.tunnelAddress);
  expect(await two.netns.who(one.tunnelAddress, port)).toBe(two.tunnelAddress);
});

test.each([
  { b: 'none', told: false, how: 'by itself: B is reachable' },
  { b: 'port-preserving', told: true, how: 'once B is told: its NAT box lets in only whom B has dialled' },
] as const)('a NAT box of A that gets another public address is followed $how', async ({ b, told: reported }) => {
  const [one, two] = [await endpoint(clusters, net, 'port-preserving', 1), await endpoint(clusters, net, b, 2)];
  await dialEachOther(one, two);
  for (const own of [one, two]) await eventually('Connected', isUp(own), { withinMs: 45_000 });
  const moved = one.publicAddress.replace(/1$/, '99');
  await one.gate.ip([`address del ${one.publicAddress}/15 dev wan`, `address add ${moved}/15 dev wan`]);
  if (reported) one.publicAddress = moved;
  const began = performance.now();
  const heard = () => two.reports.at(-1)?.peerEndpoint?.startsWith(`${moved}:`);
  await eventually('B hears A at its new address', heard, { withinMs: 45_000 });
  await eventually('traffic flows', () => two.netns.who(one.tunnelAddress, port));
  console.log(`followed after ${Math.round(performance.now() - began)} ms`);
});

test('a path that drops large packets without a word is measured: 1350 bytes outside are 1280 inside, in blocks of 16', async () => {
  const [one, two] = [await endpoint(clusters, net, 'none', 1), await endpoint(clusters, net, 'none', 2)];
  for (const { netns } of [one, two]) await netns.ip(['link set dev wan mtu 1500']);
  // A switch port drops frames that are too large, without an ICMP error.
  await net.ip([`link set dev ${two.cable} mtu 1350`]);
  await dialEachOther(one, two);
  const found = () => one.reports.at(-1)?.mtu;
  expect(await eventually('measured', found, { withinMs: 80_000 })).toBe(1280);
});
