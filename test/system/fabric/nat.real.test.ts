/** Tunnel endpoints behind NAT boxes (reference 10.4), with real wireguard-go and the dialling of the node process. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { userspaceTunnel } from '#agent/host/wireguard.ts';
import { encodePing } from '#agent/ping/message.ts';
import { systemClock } from '#agent/runtime/clock.ts';
import { type LinkReport, runLink } from '#agent/tunnel/run.ts';
import { silentLog } from '#shared/ports/log.ts';
import { eventually } from '../../harness/eventually.ts';
import { connect, type Netns, NetnsWorld } from '../../harness/netns.ts';
import { startWireGuard, wireGuardKeys } from '../../harness/netns-cluster.ts';

const world = new NetnsWorld();
const wireGuardPort = 51_840;
const port = 8080;
type Nat = 'none' | 'port-preserving' | 'fully random';
let net: Netns;
let serial = 0;

beforeAll(async () => {
  net = await world.add('net');
  await net.ip(['link add name under type bridge', 'link set dev under up']);
});
afterAll(() => world.close());

interface Endpoint {
  readonly netns: Netns;
  readonly tunnelAddress: string;
  readonly keys: ReturnType<typeof wireGuardKeys>;
  readonly gate: Netns;
  publicAddress: string;
  reports: LinkReport[];
}

/** A gateway, and in front of it a box that translates (or nothing). Both sides have the same inner range. */
async function endpoint(nat: Nat, number: 1 | 2): Promise<Endpoint> {
  const id = ++serial;
  const publicAddress = `198.18.${id}.1`;
  const gate = await world.add(`gate${id}`);
  await connect({ netns: gate, device: 'wan' }, { netns: net, device: `w${id}` });
  await net.ip([`link set dev w${id} master under`]);
  await gate.ip([`address add ${publicAddress}/15 dev wan`]);
  let netns = gate;
  if (nat !== 'none') {
    netns = await world.add(`end${id}`);
    await connect({ netns: gate, device: 'lan' }, { netns, device: 'eth0' });
    await gate.ip(['address add 192.168.1.1/24 dev lan']);
    await netns.ip(['address add 192.168.1.10/24 dev eth0', 'route add default via 192.168.1.1']);
    await gate.sysctl({ 'net.ipv4.ip_forward': 1 });
    await gate.nft(`table ip box {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    oifname "wan" masquerade ${nat === 'fully random' ? 'fully-random' : ''}
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
    ct state established,related accept
    iifname "lan" accept
  }
  chain input {
    type filter hook input priority filter; policy drop;
    ct state established,related accept
    iifname "lan" accept
  }
}`);
  }
  const tunnelAddress = `169.254.18.${number}`;
  await startWireGuard(netns);
  await netns.ip([`address add ${tunnelAddress}/30 dev liqo-tunnel`, 'link set dev liqo-tunnel up mtu 1340']);
  await netns.serve(port);
  netns.start(process.execPath, new URL('liqo-ping.mjs', import.meta.url).pathname, '12345');
  return { netns, tunnelAddress, keys: wireGuardKeys(), gate, publicAddress, reports: [] };
}

let stop: AbortController | undefined;
let links: Promise<void>[] = [];
afterEach(async () => {
  stop?.abort();
  await Promise.all(links);
});

function keep(own: Endpoint, peer: Endpoint, candidates: () => readonly string[], signal: AbortSignal): Promise<void> {
  const tunnel = userspaceTunnel(own.netns.pid, 'liqo-tunnel');
  const { publicKey } = peer.keys;
  let hear: ((timeStamp: string, bytes: number) => void) | undefined;
  return runLink(
    {
      clock: systemClock,
      log: silentLog,
      resolve: async () => [],
      ping: async (timeStamp, bytes) => {
        const ping = encodePing({ clusterID: 'peer', msgType: 'PING', timeStamp }, bytes);
        const agent = await own.netns.agent();
        const asked = {
          address: peer.tunnelAddress,
          port: 12345,
          hex: Buffer.from(ping).toString('hex'),
          timeoutMs: 2_000,
        };
        const answer = (await agent.ask('udp', asked).catch(() => ({ answered: false }))) as {
          answered: boolean;
          timeStamp?: string;
        };
        if (answer.answered) hear?.(answer.timeStamp ?? '', ping.length);
      },
      onPong: (listener) => {
        hear = listener;
        return () => undefined;
      },
      look: async () => {
        const found = (await tunnel.read()).peers.find((one) => one.publicKey === publicKey);
        return (
          found && {
            receivedBytes: found.receivedBytes,
            ...(found.endpoint === undefined ? {} : { endpoint: found.endpoint }),
            ...(found.lastHandshakeMs === undefined ? {} : { handshakeAt: found.lastHandshakeMs }),
          }
        );
      },
      dial: (to) => tunnel.rehandshake({ publicKey, endpoint: to, keepaliveSeconds: 1 }),
      candidates,
      size: { configured: () => 1340, inEffect: () => 1340, measuring: async () => undefined },
      report: (report) => own.reports.push(report),
    },
    signal,
  );
}

/** Both ends dial what the other says of itself: its public address with its own port, and its inner one. */
async function dialEachOther(a: Endpoint, b: Endpoint): Promise<void> {
  for (const [own, peer] of [
    [a, b],
    [b, a],
  ] as const) {
    const privateKeyFile = world.file(own.keys.privateKey);
    await userspaceTunnel(own.netns.pid, 'liqo-tunnel').configure({
      name: 'liqo-tunnel',
      implementation: 'userspace',
      mtu: 1340,
      address: `${own.tunnelAddress}/30`,
      listenPort: wireGuardPort,
      privateKeyFile,
      peer: { publicKey: peer.keys.publicKey },
    });
  }
  stop = new AbortController();
  const { signal } = stop;
  const candidatesOf = (peer: Endpoint) => () => [
    `192.168.1.10:${wireGuardPort}`,
    `${peer.publicAddress}:${wireGuardPort}`,
  ];
  links = [keep(a, b, candidatesOf(b), signal), keep(b, a, candidatesOf(a), signal)];
}

const isUp = (own: Endpoint) => () => own.reports.at(-1)?.value === 'Connected';

test.each([
  { a: 'port-preserving', b: 'port-preserving' },
  { a: 'fully random', b: 'none' },
  { a: 'none', b: 'port-preserving' },
] as const)('A behind $a and B behind $b: the tunnel comes up, both ways', async ({ a, b }) => {
  const [one, two] = [await endpoint(a, 1), await endpoint(b, 2)];
  const began = performance.now();
  await dialEachOther(one, two);
  for (const own of [one, two]) await eventually('Connected', isUp(own), { withinMs: 20_000 });
  console.log(`${a} / ${b}: up after ${Math.round(performance.now() - began)} ms`);
  expect(await one.netns.who(two.tunnelAddress, port)).toBe(one.tunnelAddress);
  expect(await two.netns.who(one.tunnelAddress, port)).toBe(two.tunnelAddress);
});

test.each([
  { b: 'none', told: false, how: 'by itself: B is reachable' },
  { b: 'port-preserving', told: true, how: 'once B is told: its NAT box lets in only whom B has dialled' },
] as const)('a NAT box of A that gets another public address is followed $how', async ({ b, told }) => {
  const [one, two] = [await endpoint('port-preserving', 1), await endpoint(b, 2)];
  await dialEachOther(one, two);
  for (const own of [one, two]) await eventually('Connected', isUp(own), { withinMs: 20_000 });
  const moved = one.publicAddress.replace(/1$/, '99');
  await one.gate.ip([`address del ${one.publicAddress}/15 dev wan`, `address add ${moved}/15 dev wan`]);
  if (told) one.publicAddress = moved;
  const began = performance.now();
  const heard = () => two.reports.at(-1)?.peerEndpoint?.startsWith(`${moved}:`);
  await eventually('B hears A at its new address', heard, { withinMs: 20_000 });
  await eventually('traffic flows', () => two.netns.who(one.tunnelAddress, port), { withinMs: 10_000 });
  console.log(`followed after ${Math.round(performance.now() - began)} ms`);
});

test('a path that drops large packets without a word is measured: 1350 bytes outside are 1280 inside, in blocks of 16', async () => {
  const [one, two] = [await endpoint('none', 1), await endpoint('none', 2)];
  for (const { netns } of [one, two]) await netns.ip(['link set dev wan mtu 1500']);
  // A switch port drops what is too large and tells nobody.
  await net.ip([`link set dev w${serial} mtu 1350`]);
  await dialEachOther(one, two);
  const found = () => one.reports.at(-1)?.mtu;
  expect(await eventually('measured', found, { withinMs: 80_000 })).toBe(1280);
});
