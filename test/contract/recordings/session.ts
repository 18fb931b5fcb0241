/**
 * Plays one session between the agent's channel and the broker of this tree, over real HTTPS and WebSockets through a proxy that writes
 * everything down: two clusters join, peer, idle for a ping, unpeer. See README.md for how to play it in an earlier tree.
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { WebSocket, WebSocketServer } from 'ws';
import { createBrokerController } from '#agent/broker/broker.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { protocolVersion } from '#shared/schema/protocol/agent-protocol.ts';
import { eventually } from '#test/harness/eventually.ts';
import { RememberingCluster } from '#test/harness/remembering-cluster.ts';
import type { Entry, Recording } from './recording.ts';

const clusters = ['rome', 'milan'] as const;
const admin = { from: 'test', requestId: 'rq', tenant: 'default', principal: 'api-key/test', role: 'admin' } as const;

const policy = {
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringPolicy',
  metadata: { name: 'default' },
  spec: {
    // What plays the controllers here knows no keys.
    trust: { firstKey: ['Broker'] },
    asConsumer: { enabled: true, autoAccept: true, peers: ['*'] },
    asProvider: {
      enabled: true,
      autoAccept: true,
      peers: ['*'],
      maxResourcesPerPeer: { cpu: '8' },
      classes: ['default'],
    },
  },
};

const clusterOf = (message: IncomingMessage): string => {
  const token = /^Bearer [^.]+\.([^.]+)\./.exec(message.headers.authorization ?? '')?.[1] ?? '';
  return JSON.parse(Buffer.from(token, 'base64url').toString('utf8')).iss;
};

const withoutSecrets = (body: unknown): unknown =>
  typeof body === 'object' && body !== null && 'token' in body ? { ...body, token: 'TOKEN', publicKey: 'KEY' } : body;

/** Notes what passes. Listens before the broker does, because the broker must know its address. */
async function startProxy(entries: Entry[], refuseUpgrades: boolean) {
  let target: { readonly port: number; readonly ca: string } | undefined;
  const server = createServer((message, response) => {
    const chunks: Buffer[] = [];
    message.on('data', (chunk: Buffer) => chunks.push(chunk));
    message.on('end', () => {
      const sent = Buffer.concat(chunks);
      const { method = '', url = '', headers } = message;
      const options = {
        host: '127.0.0.1',
        port: target?.port,
        ca: target?.ca,
        method,
        path: url,
        headers,
        agent: false as const,
      };
      const onward = request(options, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => {
          const text = Buffer.concat(parts);
          entries.push({
            at: 'http',
            cluster: clusterOf(message),
            method: method === 'POST' ? 'POST' : 'GET',
            path: url,
            ...(sent.length > 0 && { body: withoutSecrets(JSON.parse(sent.toString())) }),
            status: answer.statusCode ?? 0,
            answer: text.length === 0 ? null : JSON.parse(text.toString()),
          });
          response.writeHead(answer.statusCode ?? 502, answer.headers).end(text);
        });
      });
      onward.on('error', () => response.destroy());
      onward.end(sent);
    });
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (message, raw, head) => {
    const cluster = clusterOf(message);
    if (refuseUpgrades) {
      entries.push({ at: 'closed', cluster });
      return raw.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    }
    const headers = { authorization: message.headers.authorization ?? '' };
    const onward = new WebSocket(`wss://127.0.0.1:${target?.port}${message.url}`, { ca: target?.ca ?? '', headers });
    onward.on('error', () => raw.destroy());
    onward.once('open', () =>
      sockets.handleUpgrade(message, raw, head, (socket) => {
        entries.push({ at: 'open', cluster });
        const note = (from: 'agent' | 'broker', to: WebSocket) => (data: unknown) => {
          entries.push({ at: 'frame', cluster, from, frame: JSON.parse(String(data)) });
          to.send(String(data));
        };
        socket.on('message', note('agent', onward));
        onward.on('message', note('broker', socket));
        socket.on('close', () => {
          entries.push({ at: 'closed', cluster });
          onward.close();
        });
        onward.on('close', () => socket.close());
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    point(to: { readonly port: number; readonly ca: string }, cert: string) {
      target = to;
      server.setSecureContext({ cert, key: cert });
    },
    close() {
      server.closeAllConnections();
      server.close();
      for (const socket of sockets.clients) socket.terminate();
    },
  };
}

export interface SessionOptions {
  /** The proxy lets no WebSocket through: agents have to ask. */
  readonly refuseUpgrades?: boolean;
  /** Of the agents; default: the system's. */
  readonly clock?: Clock;
}

export async function recordSession(
  commit: string,
  log: (line: string) => void,
  { refuseUpgrades = false, clock = systemClock }: SessionOptions = {},
): Promise<Recording> {
  const entries: Entry[] = [];
  const dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-record-'));
  const stop = new AbortController();
  const proxy = await startProxy(entries, refuseUpgrades);
  let broker: Broker | undefined;
  const running: Promise<void>[] = [];
  try {
    broker = await startBroker({
      dataDir: dir,
      listen: '127.0.0.1:0',
      publicUrl: proxy.url,
      log: silentLog,
      version: 'recorded',
    });
    const { control, port, caPem } = broker;
    proxy.point({ port, ca: caPem }, `${await readFile(path.join(dir, 'tls', 'serving.pem'), 'utf8')}\n${caPem}`);
    const worlds = clusters.map(() => new RememberingCluster());
    for (const [i, fixture] of worlds.entries()) {
      const clusterId = clusters[i] ?? '';
      const { token } = await control.clusters.createJoinToken(admin, clusterId);
      fixture.put(policy);
      const data = { token: Buffer.from(token).toString('base64') };
      fixture.put({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { namespace: 'isthmus-system', name: 'isthmus-join' },
        data,
      } as never);
      const channel = createBrokerController({
        cluster: fixture.cluster,
        clusterId,
        privateKey: generateKeyPairSync('ed25519').privateKey,
        clock,
        ids: systemIds,
        log: silentLog,
        config: {
          systemNamespace: 'isthmus-system',
          agentVersion: '0.1.0',
          apiServerUrl: 'https://192.0.2.1:6443',
          apiServerCa: 'PEM',
        },
      });
      running.push(channel.run(stop.signal));
    }
    const [rome, milan] = worlds as [RememberingCluster, RememberingCluster];
    const worked = <T>(what: string, done: () => Promise<T | false> | T | false) =>
      eventually(
        what,
        async () => {
          rome.work(milan);
          milan.work(rome);
          return done();
        },
        { withinMs: 60_000, everyMs: 200 },
      );
    const tried = refuseUpgrades ? 'closed' : 'open';
    await worked('both doorbells', () => entries.filter(({ at }) => at === tried).length >= 2);
    log('joined');
    const { peering } = await control.peerings.request(admin, {
      consumer: 'rome',
      provider: 'milan',
      resources: { cpu: '1' },
    });
    entries.push({ at: 'person', does: 'peer', peering: peering.id });
    await worked(
      'the peering to be Ready',
      async () => (await control.peerings.get(admin, peering.id)).phase === 'Ready',
    );
    log('peered; waiting for a ping of each');
    const pinged = (cluster: string) =>
      entries.some((entry) => entry.at === 'frame' && entry.from === 'agent' && entry.cluster === cluster);
    if (!refuseUpgrades) await worked('a ping of each', () => clusters.every(pinged));
    await control.peerings.unpeer(admin, peering.id);
    entries.push({ at: 'person', does: 'unpeer', peering: peering.id });
    await worked(
      'the peering to be Gone',
      async () => (await control.peerings.get(admin, peering.id)).phase === 'Gone',
    );
    log('unpeered');
    return { protocol: protocolVersion, commit, clusters, entries: [...entries] };
  } finally {
    stop.abort(new Error('the session is over'));
    await Promise.allSettled(running);
    await broker?.close();
    proxy.close();
    await rm(dir, { recursive: true, force: true });
  }
}
