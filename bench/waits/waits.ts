/**
 * What changes cost a tenant of a local broker while as many long polls as it may have wait for something else. A join token is made and a page of events
 * read, in turns, alone and beside the polls, in one run: how long the read takes at the client, and how long the broker's main thread ran for both. The second
 * that wakes each poll to be metered is in it.
 */
import { loadavg } from 'node:os';
import { performance } from 'node:perf_hooks';
import { until, withBroker } from '../api/local-broker.ts';
import { type BenchOptions, type BenchResult, median, thisMachine } from '../result.ts';
import { quantile } from '../swarm/scenario.ts';

const commits = 100;
/** Of the 200 that a tenant may have. */
const polls = 190;

export const run = ({ root, runs = 5, log }: BenchOptions): Promise<BenchResult> =>
  withBroker(root, polls + 1, async ({ ask, operatorKey, served }) => {
    const body = { name: 'busy', limits: { requestsPerMinute: 1_000_000 } };
    const made = await ask(operatorKey, { method: 'POST', at: '/v1/tenants', body });
    const key = String(made.body.firstKey.secret);
    let last = 0;
    let failed = 0;

    async function measure(): Promise<Figures> {
      const reads: number[] = [];
      await served();
      for (let n = 0; n < commits; n += 1) {
        last += 1;
        const change = await ask(key, { method: 'POST', at: '/v1/join-tokens', body: { cluster: `c${last}` } });
        const from = performance.now();
        const read = await ask(key, { method: 'GET', at: '/v1/events?limit=50' });
        reads.push(performance.now() - from);
        if (change.status !== 201 || read.status !== 200)
          throw new Error(`answers have status ${change.status} and ${read.status}`);
      }
      const { ranMs } = await served();
      return {
        ran: ranMs / commits,
        read: quantile(
          reads.sort((a, b) => a - b),
          0.5,
        ),
      };
    }

    async function besidePolls(): Promise<Figures> {
      const at = '/v1/events?subject=none&wait=25';
      const waiting = Array.from({ length: polls }, () => ask(key, { method: 'GET', at }));
      await until(performance.now() + 3_000);
      const figures = await measure();
      failed += (await Promise.all(waiting)).filter(({ status }) => status !== 200).length;
      return figures;
    }

    await measure();
    const rounds: { readonly alone: Figures; readonly beside: Figures; readonly load: number }[] = [];
    for (let n = 0; n < runs; n += 1) {
      const load = loadavg()[0] ?? 0;
      const round = { alone: await measure(), beside: await besidePolls(), load };
      rounds.push(round);
      log(`round ${n + 1}: ${inWords(round.alone)} alone, ${inWords(round.beside)} beside; load ${load.toFixed(0)}`);
    }
    const medianOf = (figure: (round: (typeof rounds)[number]) => number) => median(rounds.map(figure));
    return {
      name: 'waits',
      unit: `ms is the P50 of reading a page of events after each change, beside ${polls} long polls of the tenant that wait for something else`,
      value: medianOf(({ beside }) => beside.read),
      samples: rounds.map(({ beside }) => beside.read),
      phases: {
        'P50 alone, ms': medianOf(({ alone }) => alone.read),
        'ran in the broker for a change and a read alone, ms': medianOf(({ alone }) => alone.ran),
        'ran in the broker for a change and a read beside, ms': medianOf(({ beside }) => beside.ran),
        'long polls that were not answered with 200': failed,
        'load of the machine, median of rounds': medianOf(({ load }) => load),
      },
      raw: { rounds },
      machine: thisMachine(root),
    };
  });

interface Figures {
  readonly ran: number;
  readonly read: number;
}

const inWords = ({ ran, read }: Figures): string => `P50 ${read.toFixed(1)} ms (${ran.toFixed(2)} ms in the broker)`;
