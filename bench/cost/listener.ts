/** What a portal that listens costs: a day of its socket in which nothing happens, and each time that something does. */
import type { Reading } from './meter.ts';
import { scaled, since } from './meter.ts';
import { dayMs, openStage } from './scenarios.ts';

const pingMs = 300_000;
/** Before the gateway ends the connection. */
const connectionMs = 6_600_000;

export interface ListenerReadings {
  readonly listenerDay: Reading;
  /** What one change costs more when a portal listens, is told, and reads the feed. */
  readonly listenerNews: Reading;
}

export async function measureListener(days = 1): Promise<ListenerReadings> {
  const stage = await openStage();
  const { model, apiKey } = stage;
  const { clock, meter } = model;
  const authorization = `Bearer ${apiKey}`;
  let cursor = '';
  let told = 0;
  model.onFrame = () => {
    told += 1;
  };
  const mustBe = (wanted: number, { status }: { readonly status: number }): void => {
    if (status !== wanted) throw new Error(`the model answered ${status} instead of ${wanted}`);
  };
  const change = async (): Promise<void> => {
    const body = { name: 'other', role: 'viewer' };
    mustBe(201, await model.http({ method: 'POST', path: '/v1/keys', authorization, body }));
    await model.settle();
  };
  const readFeed = async (): Promise<void> => {
    const path = `/v1/events?cursor=${cursor}`;
    const answer = await model.http({ method: 'GET', path, authorization });
    mustBe(200, answer);
    if (answer.body.items.length === 0) throw new Error('the feed has no news');
    cursor = answer.body.cursor;
  };
  // What a process reads once is read.
  await change();
  const alone = await stage.measure(change);
  let connection = 0;
  const open = async (): Promise<void> => {
    connection += 1;
    mustBe(200, await model.socket('$connect', `portal-${connection}`, { authorization }));
  };
  const ping = async (): Promise<void> => {
    const answer = await model.socket('$default', `portal-${connection}`, { body: '{"type":"ping"}' });
    mustBe(200, answer);
    cursor = answer.body.cursor;
  };
  const day = await stage.measure(async () => {
    let openedAt = Number.NEGATIVE_INFINITY;
    for (let past = 0; past < days * dayMs; past += pingMs) {
      if (clock.now() - openedAt >= connectionMs) {
        await open();
        if (connection > 1) await model.socket('$disconnect', `portal-${connection - 1}`);
        openedAt = clock.now();
      }
      clock.advance(pingMs);
      meter.add('connectionMinute', pingMs / 60_000);
      await ping();
    }
  });
  await change();
  await ping();
  told = 0;
  const heard = await stage.measure(async () => {
    await change();
    if (told !== 1) throw new Error(`the portal was told ${told} times of one change`);
    await readFeed();
  });
  return { listenerDay: scaled(day, 1 / days), listenerNews: since(alone, heard) };
}
