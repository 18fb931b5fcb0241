import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import type { PeeringRecord } from '../../model/peering-records.ts';
import type { Item, OutboxEvent, Store } from '../../ports/store.ts';
import { countedItems, countersOf, placesOf, wantedPlaces } from '../../testing/exact-counts.ts';
import { openDatabase } from './driver.ts';
import { openSqliteStore } from './sqlite-store.ts';

const root = resolve(import.meta.dirname, '../../..');
const program = join(root, '.build', 'run', `busy-broker-${process.pid}.mjs`);
const folder = mkdtempSync(join(tmpdir(), 'isthmus-killed-'));
const path = join(folder, 'broker.db');

beforeAll(async () => {
  mkdirSync(join(root, '.build', 'run'), { recursive: true });
  await build({
    absWorkingDir: root,
    entryPoints: ['control/testing/busy-broker.ts'],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
  });
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  rmSync(program, { force: true });
});

interface Death {
  /** Killed from outside once it acknowledged so many changes. */
  readonly lines?: number;
  /** Dies by itself before its so-manieth write, wherever in a transaction that is. */
  readonly write?: number;
}

/** Returns its output up to its death. */
function runAndKill(run: number, { lines = Number.POSITIVE_INFINITY, write = 0 }: Death): Promise<string[]> {
  return new Promise((done, failed) => {
    const child = spawn(process.execPath, [program, path, String(run), String(write)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      if (out.split('\n').length > lines) child.kill('SIGKILL');
    });
    child.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString();
    });
    child.on('error', failed);
    child.on('close', (code, signal) => {
      if (signal !== 'SIGKILL') failed(new Error(`ended by itself with ${code}: ${err}`));
      else done(out.split('\n').slice(0, -1));
    });
  });
}

async function all<T>(store: Store, partition: string): Promise<Item<T>[]> {
  const items: Item<T>[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.query<T>({ partition, limit: 200, ...(cursor === undefined ? {} : { cursor }) });
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return items;
}

test('a broker killed between any two writes loses nothing acknowledged and leaves nothing half-written', async () => {
  const acknowledged: string[] = [];
  const deaths: Death[] = [
    ...[1, 60, 131].map((lines) => ({ lines })),
    // The first transactions of a process have 4 to 11 writes each: these fall at their begin, in their middle and before their commit.
    ...[2, 3, 5, 8, 13, 17, 22, 34, 41, 50].map((write) => ({ write })),
  ];
  for (const [run, death] of deaths.entries()) acknowledged.push(...(await runAndKill(run, death)));

  const db = openDatabase(path);
  expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  db.close();
  const store = openSqliteStore({ path, clock: new ManualClock(Date.now()) });
  const keys = new Set((await all(store, 't/default/api-keys')).map((item) => item.sk));
  const clusters = new Set((await all(store, 't/default/clusters')).map((item) => item.sk));
  const peerings = new Map(
    (await all<PeeringRecord>(store, 't/default/peerings')).map((item) => [item.sk, item.value]),
  );
  const lost = acknowledged.filter((line) => {
    const [what, id = ''] = line.split(' ');
    if (what === 'key') return !keys.has(id);
    if (what === 'cluster') return !clusters.has(id);
    if (what === 'peering') return !peerings.has(id);
    return peerings.get(id)?.spec.unpeerRequestedAt === undefined;
  });
  expect(acknowledged.length).toBeGreaterThan(180);
  expect(lost).toEqual([]);

  const audited = (await all<{ action: string; subject: string }>(store, 't/default/audit')).map((item) => item.value);
  const events: OutboxEvent[] = [];
  for (let after: string | undefined; ; after = events.at(-1)?.cursor) {
    const page = await store.outbox(after, 200);
    if (page.length === 0) break;
    events.push(...page);
  }
  const subjects = (list: readonly { readonly subject: string }[]) => list.map((entry) => entry.subject).sort();
  const made = {
    audit: audited.filter((r) => r.action === 'api-key.create'),
    events: events.filter((e) => e.type === 'api-key.created'),
  };
  expect(subjects(made.audit)).toEqual(subjects(made.events));
  const requested = {
    audit: audited.filter((r) => r.action === 'peering.request'),
    events: events.filter((e) => e.type === 'peering.requested'),
  };
  expect(subjects(requested.audit)).toEqual([...peerings.keys()].map((id) => `peering/${id}`).sort());
  expect(subjects(requested.events)).toEqual(subjects(requested.audit));
  expect(await placesOf(store, 'default')).toEqual(await wantedPlaces(store, 'default'));
  expect(await countersOf(store, 'default')).toEqual(await countedItems(store, 'default'));
  await store.close();
}, 60_000);
