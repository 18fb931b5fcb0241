/**
 * The conformance kit of the agent protocol (docs/agent-protocol.md): a real broker on loopback, a proxy that sees and spoils what an agent says,
 * and what an agent has to do, one after the other.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import type { Caller } from '#control/access/caller.ts';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { ScriptedAgent } from '#functions/local/scripted-agent.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { AgentClaims, EnrollRequest, JoinToken } from '#shared/schema/protocol/agent-identity.ts';
import {
  AgentFrame,
  DesiredAnswer,
  type DesiredSet,
  ObservedBatch,
  type ObservedSet,
} from '#shared/schema/protocol/agent-protocol.ts';
import { type AgentProcess, startAgent } from './agent-process.ts';
import { type Exchange, type RecordingProxy, startRecordingProxy } from './recording-proxy.ts';

export interface Verdict {
  readonly check: string;
  /** What was missing; undefined: it passed. */
  readonly failed?: string;
}

const cluster = 'under-test';
const peer = 'kit-peer';
const deadlineMs = 40_000;
const lookEveryMs = 50;
/** Short, so that pings and polls can be waited for. */
const heartbeatSeconds = 2;
const admin: Caller = {
  tenant: 'default',
  principal: 'api-key/kit',
  role: 'admin',
  from: '127.0.0.1',
  requestId: 'kit',
};

class Missing extends Error {
  override readonly name = 'Missing';
}

/** Yields the verdict of each check as it is known. A check that fails ends the run: the next ones build on it. */
export async function* runKit(command: string): AsyncGenerator<Verdict> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'isthmus-agent-kit-'));
  const proxy = await startRecordingProxy();
  let broker: Broker | undefined;
  let agent: AgentProcess | undefined;
  try {
    broker = await startBroker({
      dataDir: path.join(dataDir, 'broker'),
      listen: '127.0.0.1:0',
      publicUrl: proxy.url,
      heartbeatSeconds,
      log: silentLog,
      version: '0.1.0',
    });
    const servingFile = path.join(dataDir, 'broker', 'tls', 'serving.pem');
    // The public URL names the proxy, so the broker's own port is the one that it listens on.
    await proxy.serve({ port: broker.port, servingFile, caPem: broker.caPem });
    const run = createRun({
      proxy,
      broker,
      command,
      stateDir: path.join(dataDir, 'agent'),
      note: (next) => (agent = next),
    });
    for (const [check, perform] of run.checks) {
      try {
        await perform();
        yield { check };
      } catch (error) {
        const said = agent?.output().trim();
        const why = error instanceof Missing ? error.message : String(error);
        yield { check, failed: said ? `${why}\nthe agent printed:\n${said}` : why };
        return;
      }
    }
  } finally {
    await agent?.stop();
    await broker?.close();
    await proxy.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

interface RunDeps {
  readonly proxy: RecordingProxy;
  readonly broker: Broker;
  readonly command: string;
  readonly stateDir: string;
  readonly note: (agent: AgentProcess) => void;
}

const claimsOf = ({ authorization }: Exchange): AgentClaims =>
  AgentClaims.parse(decodeJwt(authorization.replace(/^Bearer /, '')));

const isTo = (path: string, { path: at }: Exchange): boolean => at.split('?')[0] === path;

function createRun({ proxy, broker, command, stateDir, note }: RunDeps) {
  const { control } = broker;
  let running: AgentProcess;

  const ofAgent = (): readonly Exchange[] =>
    proxy.exchanges.filter(
      (exchange) => exchange.authorization !== '' && decodeJwt(exchange.authorization.slice(7)).iss === cluster,
    );
  const to = (path: string): readonly Exchange[] => ofAgent().filter((exchange) => isTo(path, exchange));
  const answered = (path: string): readonly Exchange[] => to(path).filter(({ status }) => status === 200);

  async function until<T>(what: string, look: () => T | undefined): Promise<T> {
    const deadline = Date.now() + deadlineMs;
    for (;;) {
      const found = look();
      if (found !== undefined && found !== false) return found;
      const code = running.code();
      if (code !== undefined) throw new Missing(`the agent ended with code ${code} before this: ${what}`);
      if (Date.now() > deadline) throw new Missing(`not within ${deadlineMs / 1_000} s: ${what}`);
      await systemClock.sleep(lookEveryMs, AbortSignal.timeout(deadlineMs));
    }
  }

  const start = (environment: Readonly<Record<string, string>>): void => {
    running = startAgent(command, { ISTHMUS_STATE_DIR: stateDir, ...environment });
    note(running);
  };
  const joinToken = async (): Promise<string> => (await control.clusters.createJoinToken(admin, cluster)).token;

  const sets = (): readonly { readonly set: ObservedSet; readonly at: number }[] =>
    answered('/v1/agent/observed').flatMap(({ body, at }) =>
      ObservedBatch.parse(JSON.parse(body)).sets.map((set) => ({ set, at })),
    );
  const desired = (): readonly DesiredSet[] =>
    answered('/v1/agent/desired').flatMap(({ answer = '' }) => DesiredAnswer.parse(JSON.parse(answer)).sets);
  const newest = (peering: string): DesiredSet | undefined => desired().findLast((set) => set.peering === peering);

  const things = (
    objects: readonly { readonly kind: string; readonly name: string; readonly namespace?: string | undefined }[],
  ) => objects.map(({ kind, namespace = '', name }) => `${kind}/${namespace}/${name}`);

  /** The agent has what the broker wants of that peering, or says what it refuses, and names the revision. */
  const acknowledged = (peering: string): ObservedSet | undefined => {
    const wanted = newest(peering);
    const { set } = sets().findLast((one) => one.set.peering === peering) ?? {};
    if (!wanted || !set || set.appliedRevision < wanted.revision || set.role !== wanted.role) return undefined;
    const there = new Set([...things(set.objects), ...set.refusals.map(({ object }) => object)]);
    const names = things(wanted.objects.map(({ kind, metadata }) => ({ kind, ...metadata })));
    return names.every((name) => there.has(name)) ? set : undefined;
  };
  const peerings = { asConsumer: '', asProvider: '' };
  const request = async (consumer: string, provider: string, cpu: string): Promise<string> =>
    (await control.peerings.request(admin, { consumer, provider, resources: { cpu }, class: 'default' })).peering.id;

  const checks: readonly (readonly [string, () => Promise<void>])[] = [
    [
      'refuses a broker whose certificate is not the one of the join token, and ends',
      async () => {
        const token = JoinToken.parse(JSON.parse(Buffer.from((await joinToken()).slice(9), 'base64url').toString()));
        const forged = { ...token, caHash: '0'.repeat(64) };
        start({ ISTHMUS_JOIN_TOKEN: `isthmus1.${Buffer.from(JSON.stringify(forged)).toString('base64url')}` });
        const deadline = Date.now() + deadlineMs;
        while (running.code() === undefined && Date.now() < deadline)
          await systemClock.sleep(lookEveryMs, AbortSignal.timeout(deadlineMs));
        if (!running.code()) throw new Missing('the agent went on, or ended with code 0');
        if (ofAgent().length > 0) throw new Missing('the agent sent its signature to it');
      },
    ],
    [
      'enrols by its join token, and again with the same key when the answer is lost',
      async () => {
        proxy.spoil((exchange) => isTo('/v1/agent/enroll', exchange), { do: 'lose' });
        start({ ISTHMUS_JOIN_TOKEN: await joinToken() });
        const second = await until('a second enrolment', () => to('/v1/agent/enroll')[1]);
        const keys = to('/v1/agent/enroll').map(({ body }) => EnrollRequest.parse(JSON.parse(body)).publicKey.x);
        if (new Set(keys).size > 1) throw new Missing('the second enrolment came with another key');
        if (second.status !== 200)
          throw new Missing(`the second enrolment was answered ${second.status}: ${second.answer}`);
      },
    ],
    [
      'reports the facts of its cluster',
      async () => {
        await until('a report with facts', () =>
          answered('/v1/agent/observed').some(({ body }) => ObservedBatch.parse(JSON.parse(body)).facts !== undefined),
        );
      },
    ],
    [
      'reads everything that should exist',
      async () => {
        await until('GET /v1/agent/desired?after=0', () =>
          answered('/v1/agent/desired').some(({ path: at }) => at.endsWith('?after=0')),
        );
      },
    ],
    [
      'opens the WebSocket and pings in the pace that it was told',
      async () => {
        await until('a WebSocket', () => proxy.open() > 0);
        const pings = () => proxy.frames.filter(({ from }) => from === 'agent');
        await until('three pings', () => pings().length >= 3);
        for (const { text } of pings()) {
          const ping = AgentFrame.parse(JSON.parse(text));
          if (ping.revision === undefined || ping.heartbeatSeconds === undefined)
            throw new Missing(`a ping says what the agent knows: revision and heartbeatSeconds; this one was ${text}`);
        }
      },
    ],
    [
      'applies documents as a consumer when the WebSocket rings, and acknowledges their revision',
      async () => {
        const token = await control.clusters.createJoinToken(admin, peer);
        const other = new ScriptedAgent(token.token, broker.caPem);
        const enrolled = await other.enroll();
        if (enrolled.status !== 200)
          throw new Error(`the kit's own cluster cannot join: ${JSON.stringify(enrolled.body)}`);
        peerings.asConsumer = await request(cluster, peer, '1');
        await until('an acknowledged set as consumer', () => acknowledged(peerings.asConsumer));
      },
    ],
    [
      'applies documents as a provider',
      async () => {
        peerings.asProvider = await request(peer, cluster, '1');
        await until('an acknowledged set as provider', () => acknowledged(peerings.asProvider));
      },
    ],
    [
      'waits as long as Retry-After says when the broker is busy, and signs once more',
      async () => {
        const seconds = 3;
        proxy.spoil((exchange) => isTo('/v1/agent/observed', exchange), { do: 'busy', retryAfterSeconds: seconds });
        await request(cluster, peer, '2');
        const refused = await until('a report that is refused', () =>
          to('/v1/agent/observed').findLast(({ status }) => status === 503),
        );
        const next = await until('its repeat', () => to('/v1/agent/observed').find(({ at }) => at > refused.at));
        if (next.at - refused.at < seconds * 1_000) throw new Missing(`it came again after ${next.at - refused.at} ms`);
        await until('the acknowledged change', () => acknowledged(peerings.asConsumer));
      },
    ],
    [
      'polls while there is no WebSocket, and opens it again',
      async () => {
        proxy.refuseSockets(true);
        await request(cluster, peer, '3');
        await until('the change, acknowledged without a WebSocket', () => acknowledged(peerings.asConsumer));
        proxy.refuseSockets(false);
        await until('a new WebSocket', () => proxy.open() > 0);
      },
    ],
    [
      'goes on after a restart with the key that it has',
      async () => {
        await running.stop();
        const [enrolments, reads] = [to('/v1/agent/enroll').length, answered('/v1/agent/desired').length];
        start({});
        await until('a signed request', () => answered('/v1/agent/desired').length > reads);
        if (to('/v1/agent/enroll').length > enrolments) throw new Missing('it enrolled once more');
      },
    ],
    [
      'removes what it applied when a peering ends, and says so',
      async () => {
        await control.peerings.unpeer(admin, peerings.asProvider);
        await until('an empty set at the revision of the end', () => {
          const wanted = newest(peerings.asProvider);
          const { set } = sets().findLast((one) => one.set.peering === peerings.asProvider) ?? {};
          return (
            wanted?.state === 'absent' && set && set.objects.length === 0 && set.appliedRevision >= wanted.revision
          );
        });
      },
    ],
    [
      'changes its key with a proof by the one before',
      async () => {
        await running.stop();
        const before = to('/v1/agent/enroll').length;
        start({ ISTHMUS_JOIN_TOKEN: await joinToken(), ISTHMUS_ROTATE_KEY: '1' });
        const enrolment = await until('an enrolment with the new key', () => to('/v1/agent/enroll')[before]);
        if (enrolment.status !== 200) throw new Missing(`it was answered ${enrolment.status}: ${enrolment.answer}`);
        const [former, next] = [to('/v1/agent/enroll')[0], enrolment].map((one) =>
          EnrollRequest.parse(JSON.parse(one?.body ?? '')),
        );
        if (former?.publicKey.x === next?.publicKey.x) throw new Missing('the key is the same as before');
        if (next?.succession === undefined) throw new Missing('the enrolment has no succession');
        const since = enrolment.at;
        await until('a request with the new key', () => answered('/v1/agent/desired').some(({ at }) => at > since));
      },
    ],
    [
      'signed every request by the rules: EdDSA, at most a minute, once, with the version of its protocol',
      async () => {
        const all = ofAgent();
        const ids = all.map((exchange) => claimsOf(exchange).jti);
        if (new Set(ids).size < ids.length) throw new Missing('a jti came twice');
        for (const exchange of all) {
          const { exp, iat, ver } = claimsOf(exchange);
          if (exp - iat > 60) throw new Missing(`a request was good for ${exp - iat} s`);
          if (ver === undefined) throw new Missing('a request has no claim ver');
          const { alg } = decodeProtectedHeader(exchange.authorization.slice(7));
          if (alg !== 'EdDSA' && alg !== 'Ed25519') throw new Missing(`a request is signed with ${alg}`);
          if (exchange.status === 401)
            throw new Missing(`${exchange.method} ${exchange.path} was answered 401: ${exchange.answer}`);
        }
      },
    ],
  ];
  return { checks };
}
