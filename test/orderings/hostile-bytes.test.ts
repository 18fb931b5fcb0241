/**
 * Raw bytes on every socket that the agent opens to a network, and on both ends of the broker's WebSocket: damaged and endless requests, requests in
 * pieces, TLS records out of place, frames of any shape. No server of ours ends, none holds a connection or memory of such a caller, none lets it in.
 */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { allow } from '#agent/admission/review.ts';
import { serveAdmission } from '#agent/admission/server.ts';
import { ProxyAuthorizer } from '#agent/api-proxy/authorizer.ts';
import { startApiProxy } from '#agent/api-proxy/server.ts';
import { createDoorbell } from '#agent/broker/session/notify-socket.ts';
import { createIntervals } from '#agent/broker/session/poll-interval.ts';
import { createBrokerClient } from '#agent/broker/session/signed-client.ts';
import { NodeAccess } from '#agent/offloading/consumer/kubelet-api/caller.ts';
import { KubeletEndpoint } from '#agent/offloading/consumer/kubelet-api/endpoint.ts';
import { selfSigned } from '#agent/offloading/consumer/kubelet-api/serving-certificate.ts';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { countOf } from '#test/harness/cases.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type Attempt, anyAttempt, type Outcome, send, type Target, webSocketFrames } from '#test/harness/raw-bytes.ts';

const runs = countOf(10_000, 72);
/** Connections at a time: those that stay wait for the patience of the server, all of them together. */
const atOnce = countOf(250, 24);
const patienceMs = countOf(1_500, 500);
/** What callers may leave behind in the process, all together. */
const mostBytesKept = 48 * 1024 * 1024;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
function heldBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** All attempts; each outcome goes to `judge`, and the server answers `isWell` after each group of them. */
async function attack(
  target: Target,
  targets: readonly string[],
  judge: (outcome: Outcome) => void,
  isWell: () => Promise<void>,
): Promise<void> {
  const before = heldBytes();
  await fc.assert(
    fc.asyncProperty(fc.array(anyAttempt(targets), { minLength: atOnce, maxLength: atOnce }), async (group) => {
      for (const outcome of await Promise.all(group.map((attempt: Attempt) => send(target, attempt)))) judge(outcome);
      await isWell();
    }),
    { numRuns: Math.ceil(runs / atOnce), endOnFailure: true },
  );
  expect(heldBytes() - before).toBeLessThan(mostBytesKept);
}

const certificate = issueServingCertificate(['localhost'], Date.now());

test('the webhook server hears none of them, whether they know its secret path or not', async () => {
  const secretPath = 's'.repeat(64);
  let heard = 0;
  const routes = new Map([
    [
      '/validate/things',
      () => {
        heard += 1;
        return allow;
      },
    ],
  ]);
  const limits = { patienceMs, idleMs: 2 * patienceMs };
  const common = { routes, certificate, secretPath, log: silentLog, host: '127.0.0.1', port: 0 };
  const server = await serveAdmission({ ...common, ...limits });
  closers.push(() => server.close());
  const target = { port: server.port, ca: certificate.certificate };
  const paths = ['/validate/things', `/${secretPath}/validate/things`, `/${secretPath}/none`];
  const request = {
    uid: 'u1',
    operation: 'CREATE',
    namespace: 'n',
    userInfo: { username: 'u' },
    object: { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'web' } },
  };
  const text = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
  let asked = 0;
  await attack(
    target,
    paths,
    ({ statuses }) => {
      expect(statuses.filter((status) => status < 400 && status !== 100)).toEqual([]);
      expect(heard).toBe(asked);
    },
    async () => {
      asked += 1;
      const good = `POST ${paths[1]} HTTP/1.1\r\nHost: x\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`;
      const { statuses } = await send(target, { pieces: [Buffer.from(good)], ending: 'stay', withoutTls: false });
      expect(statuses).toEqual([200]);
    },
  );
}, 900_000);

test('the proxy to the API server joins none of them with it', async () => {
  let joined = 0;
  const upstream = createTcpServer((socket) => {
    joined += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  closers.push(() => upstream.close());
  const api = 'milan.example:6443';
  const rome = generateKeyPairSync('ed25519').publicKey;
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([api]),
    nonce: 'n'.repeat(24),
    clock: systemClock,
    keysOf: (consumer) => (consumer === 'rome' ? [rome] : []),
  });
  const proxy = await startApiProxy({
    authorizer,
    nonce: 'n'.repeat(24),
    credentialFor: () => 'a certificate',
    upstream: { host: '127.0.0.1', port: (upstream.address() as AddressInfo).port },
    port: 0,
    host: '127.0.0.1',
    clock: systemClock,
    log: silentLog,
    headersMs: patienceMs,
  });
  closers.push(() => proxy.close());
  const target = { port: proxy.port };
  const connect = Buffer.from(`CONNECT ${api} HTTP/1.1\r\nHost: ${api}\r\n\r\n`);
  await attack(
    target,
    [api, '/certificate', '/'],
    ({ statuses, text }) => {
      expect(statuses.filter((status) => status < 400 && status !== 100)).toEqual([]);
      expect(text).not.toContain('a certificate');
      expect([joined, proxy.open().size]).toEqual([0, 0]);
    },
    async () => {
      const { statuses } = await send(target, { pieces: [connect], ending: 'stay', withoutTls: false });
      expect(statuses).toEqual([407]);
    },
  );
}, 900_000);

test('the kubelet API of a virtual node shows none of them a pod', async () => {
  let shown = 0;
  const refused = async () => ({ status: { authenticated: false, allowed: false } });
  const show = async () => {
    shown += 1;
    return '';
  };
  const endpoint = new KubeletEndpoint(
    {
      nodeName: 'milan',
      access: new NodeAccess({ api: { postPath: refused, post: refused } as unknown as KubeApi, clock: systemClock }),
      target: () => {
        shown += 1;
        throw new TypeError('no caller gets here');
      },
      podList: show,
      usage: show,
      log: silentLog,
      patienceMs,
    },
    selfSigned({ nodeName: 'milan', addresses: ['127.0.0.1'] }, { clock: systemClock, ids: systemIds }),
    undefined,
  );
  await endpoint.listen('127.0.0.1', 0, 1);
  closers.push(() => endpoint.close());
  const target = { port: endpoint.port, ca: certificate.certificate };
  const paths = ['/pods', '/healthz', '/exec/demo/web/app?command=sh', '/containerLogs/demo/web/app', '/stats/summary'];
  await attack(
    target,
    paths,
    ({ statuses }) => {
      expect(statuses.filter((status) => status < 400 && status !== 100)).toEqual([]);
      expect(shown).toBe(0);
    },
    async () => {
      const good = Buffer.from('GET /pods HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      const { statuses } = await send(target, { pieces: [good], ending: 'stay', withoutTls: false });
      expect(statuses).toEqual([401]);
    },
  );
  await eventually('no connection to be left', async () => endpoint.connections === 0, { withinMs: 20_000 });
}, 900_000);

const acceptKey = (key: string) =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

test('an agent outlives a broker whose WebSocket speaks no WebSocket, and rings for nothing but rings', async () => {
  let say: Buffer = Buffer.alloc(0);
  let spoken = 0;
  const sockets = new Set<Duplex>();
  const broker: Server = createServer((_request, response) => response.writeHead(404).end());
  broker.on('upgrade', (request, socket: Duplex) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
    const accept = acceptKey(String(request.headers['sec-websocket-key']));
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.write(say);
    // The connection ends after each: the agent comes again.
    socket.end();
    spoken += 1;
  });
  await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    broker.close();
  });
  const intervals = createIntervals();
  intervals.adopt({ heartbeatSeconds: 300, pollSeconds: 60, protocolVersion: 2 });
  const identity = {
    url: `http://127.0.0.1:${(broker.address() as AddressInfo).port}`,
    tenant: 'default',
    clusterId: 'rome',
    privateKey: generateKeyPairSync('ed25519').privateKey,
  };
  const client = createBrokerClient(identity, { clock: systemClock, ids: systemIds });
  const before = heldBytes();
  // No pause between two tries: the clock that the agent waits by has always struck already.
  const clock = { ...systemClock, now: () => systemClock.now(), sleep: async () => new Promise<void>(setImmediate) };
  const stop = new AbortController();
  const doorbell = createDoorbell({
    client,
    clock: clock as typeof systemClock,
    log: silentLog,
    intervals,
    revision: () => 7,
    onRing: () => undefined,
    onChange: () => undefined,
  });
  const running = doorbell.run(stop.signal);
  closers.push(async () => {
    stop.abort();
    await running;
    client.close();
  });
  await fc.assert(
    fc.asyncProperty(webSocketFrames, async (frames) => {
      say = frames;
      const last = spoken;
      await eventually('the agent to come again', async () => spoken > last, { withinMs: 20_000, everyMs: 1 });
      expect([intervals.heartbeatMs() >= 1_000, intervals.pollMs() >= 1_000]).toEqual([true, true]);
    }),
    { numRuns: runs, endOnFailure: true },
  );
  expect(heldBytes() - before).toBeLessThan(mostBytesKept);
}, 900_000);
