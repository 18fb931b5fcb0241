import { expect, test } from 'vitest';
import { Pool } from './pool.ts';

interface Server {
  readonly number: number;
}

function poolOf(clean: (server: Server) => Promise<void> = async () => undefined) {
  const ended: number[] = [];
  const lines: string[] = [];
  const renewed: number[] = [];
  let started = 0;
  const pool = new Pool<Server>({
    start: async () => ({ number: ++started }),
    clean,
    renew: async ({ number }) => void renewed.push(number),
    end: async ({ number }) => void ended.push(number),
    log: (line) => lines.push(line),
  });
  return { pool, ended, renewed, lines };
}

test('a returned server is leased again, and no second one is started', async () => {
  const { pool, renewed } = poolOf();
  const first = await pool.lease();
  expect(renewed).toEqual([]);
  await first.release();
  const second = await pool.lease();
  expect(second.server).toBe(first.server);
  expect(renewed).toEqual([1]);
  expect(pool.counts).toEqual({ started: 1, leased: 2, discarded: 0, held: 1 });
});

test('a server is held by one lease at a time, and each of several leases at once gets a server of its own', async () => {
  const { pool } = poolOf();
  const leases = await Promise.all([pool.lease(), pool.lease(), pool.lease()]);
  expect(new Set(leases.map(({ server }) => server.number)).size).toBe(3);
});

test('a lease waits for a server that is being cleaned; a second lease starts one', async () => {
  let finish = (): void => undefined;
  const cleaned = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const { pool } = poolOf(() => cleaned);
  const first = await pool.lease();
  const released = first.release();
  const waiting = pool.lease();
  const other = await pool.lease();
  expect(other.server.number).toBe(2);
  finish();
  await released;
  expect((await waiting).server).toBe(first.server);
});

test('a server that cannot be cleaned is ended, the reason is logged, and the lease that waited for it starts another', async () => {
  const { pool, ended, lines } = poolOf(async () => {
    throw new Error('namespaces/demo stays');
  });
  const first = await pool.lease();
  const released = first.release();
  const next = await pool.lease();
  await released;
  expect(next.server.number).toBe(2);
  expect(ended).toEqual([1]);
  expect(lines.join()).toContain('namespaces/demo stays');
  expect(pool.counts.discarded).toBe(1);
});

test('a server that can neither be cleaned nor ended is told, its release does not reject, and the lease that waited starts another', async () => {
  const lines: string[] = [];
  let started = 0;
  const fails = (what: string) => async () => {
    throw new Error(what);
  };
  const pool = new Pool<Server>({
    start: async () => ({ number: ++started }),
    clean: fails('namespaces/demo stays'),
    renew: async () => undefined,
    end: fails('its folder is not empty'),
    log: (line) => lines.push(line),
  });
  const first = await pool.lease();
  const released = first.release();
  const next = await pool.lease();
  await released;
  expect(next.server.number).toBe(2);
  expect(lines.join()).toContain('its folder is not empty');
  await pool.close();
});

test('a lease that is released twice is cleaned once', async () => {
  let cleanings = 0;
  const { pool } = poolOf(async () => void cleanings++);
  const lease = await pool.lease();
  await Promise.all([lease.release(), lease.release()]);
  expect(cleanings).toBe(1);
});

test('closing ends every server, leased ones too, and refuses new leases', async () => {
  const { pool, ended } = poolOf();
  const [, second] = await Promise.all([pool.lease(), pool.lease()]);
  await second.release();
  await pool.close();
  expect(ended.toSorted()).toEqual([1, 2]);
  await expect(pool.lease()).rejects.toThrow('closed');
});
