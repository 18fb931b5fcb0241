/**
 * The API in local mode, as a process of its own: 200 requests a second, sent on time whether or not earlier ones were answered, against a
 * broker with a tenant of a hundred clusters; then its memory with a thousand agents connected over real WebSockets.
 */
import { readFileSync } from 'node:fs';
import { ScriptedAgent } from '#functions/local/scripted-agent.ts';
import { type BenchOptions, type BenchResult, median, thisMachine } from '../result.ts';
import { quantile } from '../swarm/scenario.ts';
import { type Call, type LocalBroker, load, withBroker } from './local-broker.ts';

const perSecond = 200;
const warmUpSeconds = 5;
const seconds = 30;
const known = 100;
const connected = 1_000;

export const run = ({ root, runs = 3, log }: BenchOptions): Promise<BenchResult> =>
  withBroker(root, 64, async (broker) => {
    log(`broker at ${broker.url}; ${known} clusters enrol`);
    const peers = await enrolMany(broker, 0, known);
    const rssIdle = residentMiB(broker.pid);
    let sent = 0;
    const failed: string[] = [];
    const measured = async (forSeconds: number): Promise<readonly number[]> => {
      const result = await load((call) => broker.ask(broker.key, call), {
        rate: perSecond,
        seconds: forSeconds,
        question() {
          sent += 1;
          return questions[sent % questions.length]?.(sent) ?? { method: 'GET', at: '/v1/tenant' };
        },
      });
      failed.push(...result.failed);
      return result.times;
    };
    await measured(warmUpSeconds);
    const p99: number[] = [];
    const all: number[] = [];
    for (let round = 0; round < runs; round += 1) {
      const times = await measured(seconds);
      p99.push(quantile(times, 0.99));
      all.push(...times);
      log(`round ${round + 1}: P50 ${quantile(times, 0.5).toFixed(1)} ms, P99 ${quantile(times, 0.99).toFixed(1)} ms`);
    }
    all.sort((a, b) => a - b);
    log(`${connected} agents connect`);
    const rest = await enrolMany(broker, known, connected - known);
    const sockets = [];
    for (const agent of [...peers, ...rest]) sockets.push(await agent.connect());
    const rssConnected = residentMiB(broker.pid);
    const busy = await measured(10);
    for (const socket of sockets) socket.terminate();
    return {
      name: 'api',
      unit: `ms, P99 at ${perSecond} requests a second (target 50)`,
      value: median(p99),
      samples: p99,
      phases: {
        'P50 ms': quantile(all, 0.5),
        'P90 ms': quantile(all, 0.9),
        'worst ms': all.at(-1) ?? Number.NaN,
        [`P99 ms with ${connected} agents connected`]: quantile(busy, 0.99),
        'MiB resident, 100 clusters, none connected': rssIdle,
        [`MiB resident, ${connected} agents connected`]: rssConnected,
        'requests that failed': failed.length,
      },
      machine: thisMachine(root),
    };
  });

async function enrolMany({ ask, key, ca }: LocalBroker, from: number, count: number): Promise<ScriptedAgent[]> {
  const agents: ScriptedAgent[] = [];
  for (let i = from; i < from + count; i += 1) {
    const { status: made, body } = await ask(key, {
      method: 'POST',
      at: '/v1/join-tokens',
      body: { cluster: `c-${i}` },
    });
    if (made !== 201) throw new Error(`a join token for c-${i}: ${made}`);
    const agent = new ScriptedAgent(body.token, ca);
    const { status } = await agent.enroll();
    if (status !== 200) throw new Error(`enrolling c-${i}: ${status}`);
    agents.push(agent);
  }
  return agents;
}

/** What a portal asks: lists, single clusters and peerings, the feed, and now and then a change. */
const get = (at: string): Call => ({ method: 'GET', at });
const questions: readonly ((n: number) => Call)[] = [
  () => get('/v1/clusters?limit=50'),
  (n) => get(`/v1/clusters/c-${n % known}`),
  () => get('/v1/peerings?limit=50'),
  () => get('/v1/events?limit=50'),
  (n) => get(`/v1/clusters/c-${(n * 7) % known}`),
  () => get('/v1/tenant'),
  () => get('/v1/audit?limit=20'),
  (n) => ({
    method: 'POST',
    at: '/v1/peerings',
    body: { consumer: `c-${(2 * n) % known}`, provider: `c-${(2 * n + 1) % known}`, resources: { cpu: '1' } },
  }),
  (n) => get(`/v1/clusters/c-${(n * 3) % known}`),
  (n) => ({ method: 'POST', at: '/v1/join-tokens', body: { cluster: `new-${n}` } }),
];

function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1_024;
}
