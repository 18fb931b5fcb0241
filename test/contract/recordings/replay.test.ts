/** Sessions recorded with earlier versions, replayed against the broker and the agent of today. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { createBrokerController } from '#agent/broker/broker.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { servingCertificates } from '#functions/local/certificates.ts';
import { ScriptedAgent } from '#functions/local/scripted-agent.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type DesiredAnswer, oldestProtocolVersion, protocolVersion } from '#shared/schema/protocol/agent-protocol.ts';
import { eventually } from '#test/harness/eventually.ts';
import { RememberingCluster } from '#test/harness/remembering-cluster.ts';
import { type Entry, lacking, type Recording } from './recording.ts';

const here = import.meta.dirname;
const files = (await readdir(here)).filter((name) => name.endsWith('.json')).sort();
const recordings = await Promise.all(
  files.map(async (name) => ({
    name,
    recording: JSON.parse(await readFile(path.join(here, name), 'utf8')) as Recording,
  })),
);
const admin = { from: 'test', requestId: 'rq', tenant: 'default', principal: 'api-key/test', role: 'admin' } as const;

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-replay-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));
const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

test('there is a recording of every version that is spoken', () => {
  const spoken = Array.from(
    { length: protocolVersion - oldestProtocolVersion + 1 },
    (_, i) => oldestProtocolVersion + i,
  );
  expect([...new Set(recordings.map(({ recording }) => recording.protocol))].sort()).toEqual(spoken);
});

describe.each(recordings)('the agents of $name', ({ name, recording }) => {
  test('find a broker of today that answers as they expect, and peer and unpeer', async () => {
    const broker = await startBroker({
      dataDir: path.join(dir, name),
      listen: '127.0.0.1:0',
      log: silentLog,
      version: '0',
    });
    ending.push(() => broker.close());
    const seen = await replayAgents(broker, recording);
    expect(seen.problems).toEqual([]);
    expect(seen.phases).toEqual(['Ready', 'Gone']);
    // Each ping of version 1 is answered; later ones when the broker knows better.
    if (recording.protocol === 1) expect(seen.pongs).toBe(seen.pings);
    expect(seen.pongs).toBeLessThanOrEqual(seen.pings);
    expect(seen.pings).toBeGreaterThan(0);
  });
});

async function replayAgents(broker: Broker, { clusters, entries, protocol }: Recording) {
  const agents = new Map<string, ScriptedAgent>();
  const claims = protocol === 1 ? {} : { claims: { ver: protocol } };
  for (const cluster of clusters) {
    const { token } = await broker.control.clusters.createJoinToken(admin, cluster);
    agents.set(cluster, new ScriptedAgent(token, broker.caPem));
  }
  const seen = { problems: [] as string[], phases: [] as string[], pings: 0, pongs: 0, rings: 0 };
  const expectPongs: Promise<unknown>[] = [];
  let peering = { recorded: '', id: '' };
  /** Revisions are each broker's own: what was counted then, and what is counted now. */
  const revisions = new Map<string, number>();
  const sockets = new Map<string, Awaited<ReturnType<ScriptedAgent['connect']>>>();
  const today = (cluster: string, revision: number): number => revisions.get(`${cluster}/${revision}`) ?? revision;
  const translated = (cluster: string, body: unknown): unknown =>
    JSON.parse(JSON.stringify(body).replaceAll(peering.recorded || '§', peering.id), (key, value) =>
      key === 'appliedRevision' ? today(cluster, value) : value,
    );

  async function http(entry: Extract<Entry, { at: 'http' }>): Promise<void> {
    const { cluster, method, body, status, answer } = entry;
    const agent = agents.get(cluster) as ScriptedAgent;
    const at = entry.path.replace(/after=(\d+)/, (_, after) => `after=${today(cluster, Number(after))}`);
    const enrols = entry.path.endsWith('/enroll');
    const got = enrols
      ? await agent.enroll({ facts: (body as { readonly facts: unknown }).facts }, claims)
      : await agent.call(method, at, body === undefined ? undefined : translated(cluster, body), claims);
    const where = `${cluster}: ${method} ${entry.path}`;
    if (got.status !== status) seen.problems.push(`${where}: ${got.status} ${JSON.stringify(got.body)}, was ${status}`);
    else
      seen.problems.push(...lacking(answer, got.body, where).filter((text) => !/\.(sets|answers)\[\d+\]/.test(text)));
    const before = (answer as { readonly revision?: number } | null)?.revision;
    if (method === 'GET' && before !== undefined && got.body?.revision !== undefined)
      revisions.set(`${cluster}/${before}`, got.body.revision);
  }

  /** The broker of today may count a revision more than the one of then: its agent would be rung, fetch, and say the same again. */
  async function catchUp(cluster: string): Promise<void> {
    const agent = agents.get(cluster) as ScriptedAgent;
    const { revision } = (await agent.call('GET', '/v1/agent/desired?after=0', undefined, claims)).body;
    const reports = entries.flatMap((entry) =>
      entry.at === 'http' && entry.cluster === cluster && entry.path === '/v1/agent/observed' ? [entry.body] : [],
    );
    const last = reports.findLast((body) => JSON.stringify(body).includes(peering.recorded));
    const output = JSON.parse(JSON.stringify(translated(cluster, last)), (key, value) =>
      key === 'appliedRevision' ? revision : value,
    );
    const { status } = await agent.call('POST', '/v1/agent/observed', output, claims);
    if (status !== 200) seen.problems.push(`${cluster} catching up: ${status}`);
  }

  for (const entry of entries) {
    if (entry.at === 'http') await http(entry);
    else if (entry.at === 'person') {
      if (entry.does === 'peer') {
        const requested = { consumer: clusters[0], provider: clusters[1], resources: { cpu: '1' } };
        const made = await broker.control.peerings.request(admin, requested);
        peering = { recorded: entry.peering, id: made.peering.id };
      } else {
        seen.phases.push((await broker.control.peerings.get(admin, peering.id)).phase);
        await broker.control.peerings.unpeer(admin, peering.id);
      }
    } else if (entry.at === 'open') {
      const socket = await (agents.get(entry.cluster) as ScriptedAgent).connect(claims);
      sockets.set(entry.cluster, socket);
      ending.push(() => socket.terminate());
      socket.on('message', (data) => {
        const { type } = JSON.parse(String(data));
        if (type === 'pong') seen.pongs += 1;
        else seen.rings += 1;
      });
    } else if (entry.at === 'frame' && entry.from === 'agent') {
      seen.pings += 1;
      const { revision, ...frame } = entry.frame as { readonly revision?: number };
      const known = revision === undefined ? {} : { revision: today(entry.cluster, revision) };
      sockets.get(entry.cluster)?.send(JSON.stringify({ ...frame, ...known }));
      if (protocol === 1) expectPongs.push(eventually('a pong', () => seen.pongs >= seen.pings, { everyMs: 5 }));
    }
  }
  await Promise.all(expectPongs);
  expect(seen.rings).toBeGreaterThan(0);
  for (const cluster of clusters) await catchUp(cluster);
  const last = await broker.control.peerings.get(admin, peering.id);
  seen.phases.push(last.phase);
  if (last.phase !== 'Gone') seen.problems.push(JSON.stringify(last.conditions));
  return seen;
}

describe.each(recordings)('the broker of $name', ({ name, recording }) => {
  test.each(recording.clusters)(
    'finds in %s an agent of today that does what it is told, and takes it back',
    async (cluster) => {
      const reported = await startRecordedBroker(recording, cluster, path.join(dir, `${name}-${cluster}`));
      const fixture = new RememberingCluster();
      const peer = new RememberingCluster();
      peer.put({ apiVersion: 'authentication.liqo.io/v1beta1', kind: 'Tenant', metadata: { name: 'x' } });
      const accepting = { enabled: true, autoAccept: true, peers: ['*'] };
      const spec = {
        asConsumer: accepting,
        asProvider: { ...accepting, maxResourcesPerPeer: { cpu: '8' }, classes: ['default'] },
        // A broker of then passes on no announcements.
        trust: { firstKey: ['Broker'] },
      };
      fixture.put({
        apiVersion: 'isthmus.dev/v1alpha1',
        kind: 'PeeringPolicy',
        metadata: { name: 'default' },
        spec,
      } as never);
      const identity = { url: reported.url, tenant: 'default', clusterId: cluster, caBundle: reported.ca };
      fixture.put({
        apiVersion: 'isthmus.dev/v1alpha1',
        kind: 'BrokerLink',
        metadata: { name: 'broker' },
        spec: identity,
      } as never);
      const stop = new AbortController();
      const channel = createBrokerController({
        cluster: fixture.cluster,
        clusterId: cluster,
        privateKey: generateKeyPairSync('ed25519').privateKey,
        clock: systemClock,
        ids: systemIds,
        log: silentLog,
        config: {
          systemNamespace: 'isthmus-system',
          agentVersion: '0',
          apiServerUrl: 'https://192.0.2.1:6443',
          apiServerCa: 'PEM',
        },
      });
      const running = channel.run(stop.signal);
      ending.push(async () => {
        stop.abort(new Error('over'));
        await running;
      });
      await eventually(
        'the agent to have applied the last set',
        () => {
          fixture.work(peer);
          return reported.done();
        },
        { everyMs: 20, withinMs: 15_000 },
      );
      expect(reported.problems).toEqual([]);
      const wanted = reported.sets.flatMap(({ objects }) =>
        objects.map(({ kind, metadata }) => `${kind}/${metadata.namespace ?? ''}/${metadata.name}`),
      );
      expect(wanted.length).toBeGreaterThan(2);
      expect([...new Set(wanted)].filter((object) => !fixture.applied.has(object))).toEqual([]);
      expect(fixture.names.filter((object) => wanted.includes(object))).toEqual([]);
    },
  );
});

/** Serves what a recorded broker said to one cluster: the next desired answer as soon as the one before is reported applied. */
async function startRecordedBroker({ entries }: Recording, cluster: string, at: string) {
  const tls = await servingCertificates(at, ['127.0.0.1'], Date.now());
  const requests = entries.flatMap((entry) => (entry.at === 'http' && entry.cluster === cluster ? [entry] : []));
  const desired = requests
    .filter(({ path: to }) => to.startsWith('/v1/agent/desired'))
    .map(({ answer }) => answer as DesiredAnswer);
  const news = desired.filter(({ sets }) => sets.length > 0);
  const bodies = requests.filter(({ path: to }) => to === '/v1/agent/observed');
  const problems: string[] = [];
  let released = 0;
  let applied = 0;
  let emptied = false;
  const current = (): DesiredAnswer | undefined => news[released - 1];
  const server = createServer({ cert: tls.certPem, key: tls.keyPem }, (message, response) => {
    const chunks: Buffer[] = [];
    message.on('data', (chunk: Buffer) => chunks.push(chunk));
    message.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const answer = message.url?.startsWith('/v1/agent/desired') ? fetched(message.url) : observed(JSON.parse(text));
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  const sockets = new WebSocketServer({ server });

  function release(): void {
    if (released === news.length) return;
    released += 1;
    for (const socket of sockets.clients)
      socket.send(JSON.stringify({ type: 'desired', revision: current()?.revision }));
  }

  function fetched(url: string): unknown {
    const after = Number(/after=(\d+)/.exec(url)?.[1]);
    const now = current();
    const none = { ...desired[0], sets: [], full: after === 0 };
    if (now === undefined) return none;
    return after === now.revision ? { ...none, ...now, sets: [], full: false } : { ...now, full: after === 0 };
  }

  function observed(batch: {
    readonly sets: readonly { readonly appliedRevision: number; readonly objects: readonly unknown[] }[];
  }): unknown {
    for (const set of batch.sets) {
      const like = bodies.flatMap(({ body }) => (body as typeof batch).sets).at(0);
      problems.push(...lacking({ ...like, objects: [] }, set, 'observed'));
      applied = Math.max(applied, set.appliedRevision);
      emptied = set.objects.length === 0 && set.appliedRevision === news.at(-1)?.revision;
    }
    const first = bodies[0]?.answer as object;
    if (applied >= (current()?.revision ?? 0)) release();
    return { ...first, revision: current()?.revision ?? 0 };
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ending.push(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca: tls.caPem,
    problems,
    sets: news.flatMap(({ sets }) => sets).filter(({ state }) => state === 'present'),
    done: () => released === news.length && emptied,
  };
}
