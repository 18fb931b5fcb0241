import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { acquireHostMutex } from './host-mutex.ts';

const deps = { clock: systemClock, log: silentLog };
const never = new AbortController().signal;

describe.runIf(process.platform === 'linux')('a name on a node', () => {
  test('is held by one at a time: the next one waits until it is given back', async () => {
    const name = `isthmus-test-${randomUUID()}`;
    const first = await acquireHostMutex(name, deps, never);
    let got = false;
    const second = acquireHostMutex(name, deps, never).then((held) => {
      got = true;
      return held;
    });
    await systemClock.sleep(250);
    expect(got).toBe(false);
    await first.release();
    await (await second).release();
    expect(got).toBe(true);
  });

  test('is not waited for once the process is asked to end', async () => {
    const name = `isthmus-test-${randomUUID()}`;
    const held = await acquireHostMutex(name, deps, never);
    const stop = new AbortController();
    const waiting = acquireHostMutex(name, deps, stop.signal);
    stop.abort(new Error('asked to end'));
    await expect(waiting).rejects.toThrow('asked to end');
    await held.release();
  });
});
