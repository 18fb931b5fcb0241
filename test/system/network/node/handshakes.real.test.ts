/** Two real wireguard-go, one of which is dialled and dials in vain itself: no session is lost by that, and none is waited for longer than it takes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { userspaceTunnel } from '#agent/network/kernel/wireguard.ts';
import { eventually } from '../../../harness/eventually.ts';
import { type Netns, NetnsFixture } from '../../../harness/netns.ts';
import { configure, type Endpoint, endpoint, isUp, keep, openSwitch, port, wireGuardPort } from './ends.ts';

const clusters = new NetnsFixture();
let net: Netns;
beforeAll(async () => {
  net = await openSwitch(clusters);
});
afterAll(() => clusters.close());

const keepaliveSeconds = 1;
/** On the switch, and nothing there. */
const nowhere = ['198.19.255.1:51840', '198.19.255.2:51840'];
const tunnelOf = (own: Endpoint) => userspaceTunnel(own.netns.pid, 'liqo-tunnel');
const peerIn = async (own: Endpoint) => (await tunnelOf(own).read()).peers[0];

async function pair(): Promise<readonly [Endpoint, Endpoint]> {
  const [client, server] = [await endpoint(clusters, net, 'none', 1), await endpoint(clusters, net, 'none', 2)];
  await configure(client, server);
  await configure(server, client);
  return [client, server];
}

test('what the peer sends goes on arriving while this side dials other places, and the next handshake carries both ways at once', async () => {
  const [client, server] = await pair();
  const publicKey = client.keys.publicKey;
  await tunnelOf(client).shakeHands({
    publicKey: server.keys.publicKey,
    endpoint: `${server.publicAddress}:${wireGuardPort}`,
    keepaliveSeconds,
  });
  await eventually('the client is answered', () => client.netns.who(server.tunnelAddress, port), { withinMs: 4_000 });
  const made = (await peerIn(server))?.lastHandshakeMs;
  for (const endpoint of [...nowhere, ...nowhere]) {
    await tunnelOf(server).shakeHands({ publicKey, endpoint, keepaliveSeconds });
    const before = (await peerIn(server))?.receivedBytes ?? 0;
    await client.netns.udp(server.tunnelAddress, port, { size: 500, timeoutMs: 100 });
    await eventually(
      'the packet arrived by the session from before',
      async () => ((await peerIn(server))?.receivedBytes ?? 0) >= before + 500,
      { withinMs: 4_000 },
    );
    // And its address is where the server sends to again.
    expect((await peerIn(server))?.endpoint).toBe(`${client.publicAddress}:${wireGuardPort}`);
    expect((await peerIn(server))?.lastHandshakeMs).toBe(made);
  }
  await tunnelOf(server).shakeHands({
    publicKey,
    endpoint: `${client.publicAddress}:${wireGuardPort}`,
    keepaliveSeconds,
  });
  // WireGuard by itself would wait for 5 s after the handshake before.
  await eventually('the client is answered again', () => client.netns.who(server.tunnelAddress, port), {
    withinMs: 4_000,
  });
  expect((await peerIn(server))?.lastHandshakeMs).toBeGreaterThan(made ?? 0);
});

test('a device keeps its own key over a handshake', async () => {
  const [client, server] = await pair();
  const dial = { publicKey: server.keys.publicKey, endpoint: nowhere[0]!, keepaliveSeconds };
  await Promise.all([1, 2, 3].map(() => tunnelOf(client).shakeHands(dial)));
  // It would be told otherwise.
  const control = tunnelOf(client);
  await control.shakeHands(dial);
  const wrote = await control.configure({
    name: 'liqo-tunnel',
    implementation: 'userspace',
    mtu: 1340,
    address: `${client.tunnelAddress}/30`,
    listenPort: wireGuardPort,
    privateKeyFile: client.privateKeyFile,
    peer: { publicKey: server.keys.publicKey, keepaliveSeconds },
  });
  expect(wrote).toEqual([]);
});

test('a link whose dialled side dials in vain is Connected on both sides, again and again, sooner than WireGuard itself would start again', async () => {
  const [client, server] = await pair();
  const took: number[] = [];
  for (let round = 0; round < 10; round += 1) {
    const stop = new AbortController();
    for (const [own, peer] of [
      [client, server],
      [server, client],
    ] as const) {
      await tunnelOf(own).forget(peer.keys.publicKey);
      own.reports = [];
    }
    const began = performance.now();
    const atServer = keep(server, client, { candidates: () => nowhere }, stop.signal);
    // Every phase of the server's attempts against the client's.
    await eventually('the client begins', () => performance.now() - began > 47 * round, { everyMs: 5 });
    const candidates = () => [`${server.publicAddress}:${wireGuardPort}`];
    const atClient = keep(client, server, { candidates }, stop.signal);
    for (const own of [client, server]) await eventually('Connected', isUp(own), { withinMs: 12_000 });
    took.push(Math.round(performance.now() - began));
    stop.abort();
    await Promise.all([atServer, atClient]);
  }
  console.log(`up after ${took.join(', ')} ms`);
});
