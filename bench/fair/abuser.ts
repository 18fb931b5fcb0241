/**
 * The abusive tenant of `fair.ts`: asks for what is dear, within its limits, until its standard input ends. Prints a line once all of it runs, and
 * at the end what it asked and how much of that was refused.
 */
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { performance } from 'node:perf_hooks';
import { type Answered, asking, until } from '../api/local-broker.ts';

export interface Abuse {
  readonly asked: number;
  /** Of these, beyond its limit. */
  readonly count: number;
}

const viewers = 8;
const polls = 50;
/** Of 50 a second that its limit allows; the polls need the rest. */
const viewsPerSecond = 40;

const [url = '', caFile = ''] = process.argv.slice(2);
const key = process.env.ABUSER_KEY ?? '';
const agent = new Agent({ keepAlive: true, maxSockets: 256 });
const ask = asking(url, readFileSync(caFile, 'utf8'), agent);
const counts = { asked: 0, count: 0 };
let stopped = false;

const note = ({ status }: Answered): void => {
  counts.asked += 1;
  if (status === 429) counts.count += 1;
};

async function view(): Promise<void> {
  const { body } = await ask(key, { method: 'GET', at: '/v1/audit?action=cluster.create-join-token&limit=1' });
  // All of them are its own, and none is of that action: of two filters one is looked up, the other compared.
  const dear = `principal=${encodeURIComponent(body.items[0].principal)}&action=none`;
  let cursor: string | undefined;
  while (!stopped) {
    const next = performance.now() + (viewers * 1_000) / viewsPerSecond;
    const more = cursor === undefined ? '' : `&cursor=${cursor}`;
    const answer = await ask(key, { method: 'GET', at: `/v1/audit?${dear}&limit=1${more}` });
    note(answer);
    cursor = answer.body.cursor;
    await until(next);
  }
}

async function poll(): Promise<void> {
  while (!stopped) {
    const next = performance.now() + 8_000;
    note(await ask(key, { method: 'GET', at: '/v1/events?subject=none&wait=5' }));
    if (!stopped) await until(next);
  }
}

const running = [...Array.from({ length: viewers }, view), ...Array.from({ length: polls }, poll)];
await until(performance.now() + 2_000);
console.log('running');
process.stdin.resume();
await new Promise((resolve) => process.stdin.once('end', resolve));
stopped = true;
await Promise.all(running);
console.log(JSON.stringify(counts));
agent.destroy();
