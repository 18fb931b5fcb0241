/** Which of several commands renews the login, and what the others meet. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Clock, ManualClock } from '#shared/ports/clock.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { lockRenewal, takenOver } from './renewal-lock.ts';

let dir = '';
const lock = () => path.join(dir, 'config.json.renewing');
const io = (clock: Clock) => ({
  clock,
  signal: new AbortController().signal,
  env: { ISTHMUS_CONFIG: path.join(dir, 'config.json') },
  home: dir,
});
/** As a command leaves it that is killed while it holds the lock. */
async function leftSince(ms: number): Promise<string> {
  const entry = `${ms}-dead`;
  await mkdir(lock());
  await writeFile(path.join(lock(), entry), '');
  return entry;
}

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-lock-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test.each(['free', 'left by a command that was killed'])(
  'of 20 commands one at a time holds a lock that is %s',
  async (how) => {
    if (how !== 'free') await leftSince(systemClock.now() - 41_000);
    let holders = 0;
    const most: number[] = [];
    const one = async () => {
      const release = await lockRenewal(io(systemClock));
      most.push(++holders);
      await new Promise(setImmediate);
      holders -= 1;
      await release();
    };
    await Promise.all(Array.from({ length: 20 }, one));
    expect(most).toEqual(Array.from({ length: 20 }, () => 1));
    expect(await readdir(dir)).toEqual([]);
  },
);

test('of two commands that found the same lock too old, one takes it over, also when the other has finished by then', async () => {
  const clock = new ManualClock();
  const seen = await leftSince(clock.now() - 41_000);
  const release = await lockRenewal(io(clock));
  expect(await takenOver(lock(), seen, 'second')).toBe(false);
  await release();
  const next = await lockRenewal(io(clock));
  expect(await takenOver(lock(), seen, 'second')).toBe(false);
  await next();
  expect(await takenOver(lock(), seen, 'second')).toBe(false);
});

test('a command that comes back after its lock was taken over leaves it to the next one', async () => {
  const clock = new ManualClock();
  const slow = await lockRenewal(io(clock));
  clock.advance(41_000);
  const next = await lockRenewal(io(clock));
  await slow();
  expect(await readdir(lock())).toHaveLength(1);
  await next();
  expect(await readdir(dir)).toEqual([]);
});

test('a lock whose holder was killed while giving it back is free', async () => {
  await mkdir(lock());
  const release = await lockRenewal(io(new ManualClock()));
  expect(await readdir(lock())).toHaveLength(1);
  await release();
});

test('a command that waits for 80 s says what it waited for', async () => {
  // Renewed by others all the time: no lock is ever old.
  const clock = new ManualClock();
  const impatient = {
    now: () => clock.now(),
    sleep: async (ms: number) => {
      clock.advance(ms);
      await rm(lock(), { recursive: true });
      await leftSince(clock.now());
    },
  };
  await leftSince(clock.now());
  await expect(lockRenewal(io(impatient))).rejects.toMatchObject({
    code: 'deadline_exceeded',
    message: expect.stringContaining('80 s'),
    detail: { value: lock() },
  });
});

test('a folder that cannot be written is named, with what to do', async () => {
  await writeFile(path.join(dir, 'file'), '');
  const env = { ISTHMUS_CONFIG: path.join(dir, 'file', 'config.json') };
  await expect(lockRenewal({ ...io(new ManualClock()), env })).rejects.toMatchObject({
    code: 'host_unsupported',
    message: expect.stringContaining('config.json.renewing'),
    detail: { remedy: 'name a writable file in ISTHMUS_CONFIG' },
  });
});
