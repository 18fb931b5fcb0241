import { describe, expect, test } from 'vitest';
import { configMaps } from '#shared/domain/core-kinds.ts';
import { type ConfigMap, keyOf } from '#shared/domain/kube-object.ts';
import { again, type Outcome, settled, stalled } from '#shared/domain/outcome.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { Store } from '../cache/store.ts';
import { happenedOn, OutageTracker } from '../http/outage-tracker.ts';
import { statusError } from '../http/request.ts';
import type { Cache, ControllerOptions } from '../model/types.ts';
import { createController, watch } from './controller.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));
const configMap = (name: string, version: string, uid = name): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'n', name, uid, resourceVersion: version },
});

/** A cache whose content the test decides: the real store, without a server behind it. */
function openCache() {
  const store = new Store<ConfigMap>((error) => {
    throw error;
  });
  let sync: () => void = () => undefined;
  const synced = new Promise<void>((resolve) => {
    sync = resolve;
  });
  const cache: Cache<ConfigMap> = {
    type: configMaps,
    get: (ref) => store.get(`${ref.namespace}/${ref.name}`),
    list: () => store.list(),
    byIndex: () => [],
    synced: () => synced,
    isSynced: () => true,
    subscribe: (listener) => store.subscribe(listener),
    ageMs: () => 0,
  };
  return { store, cache, sync: () => sync() };
}

async function start(reconcile: ControllerOptions['reconcile'], options: Partial<ControllerOptions> = {}) {
  const clock = new ManualClock();
  const errors: string[] = [];
  const log: Log = {
    ...silentLog,
    with: () => log,
    warn: (message, fields) => void errors.push(`${message} ${fields?.code}`),
    error: (message, error) => void errors.push(`${message} ${(error as Error).message}`),
  };
  const { store, cache, sync } = openCache();
  const stop = new AbortController();
  const controller = createController(
    { name: 'test', watches: [watch(cache, (object) => [keyOf(object)])], reconcile, ...options },
    { clock, log, random: () => 1 },
  );
  const running = controller.run(stop.signal);
  const close = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  return { clock, store, sync, controller, close, errors, stop };
}

describe('a controller', () => {
  test('makes its first pass only when its caches have synced, and then over everything they hold', async () => {
    const seen: string[] = [];
    const { store, sync, close } = await start(async (key) => {
      seen.push(key);
      return settled;
    });
    store.put(configMap('a', '1'));
    store.put(configMap('b', '1'));
    await settle();
    expect(seen).toEqual([]);
    sync();
    await settle();
    expect(seen).toEqual(['n/a', 'n/b']);
    store.put(configMap('a', '2'));
    store.remove('n/b');
    await settle();
    expect(seen).toEqual(['n/a', 'n/b', 'n/a', 'n/b']);
    await close();
  });

  test.each<{ outcome: Outcome; passesInAMinute: number }>([
    { outcome: settled, passesInAMinute: 1 },
    { outcome: stalled('Refused', 'a human must move'), passesInAMinute: 1 },
    { outcome: again(20_000), passesInAMinute: 4 },
    { outcome: { kind: 'waiting', on: 'the provider', afterMs: 30_000 }, passesInAMinute: 3 },
  ])('that says $outcome.kind makes $passesInAMinute passes in a minute', async ({ outcome, passesInAMinute }) => {
    let passes = 0;
    const { store, sync, clock, close } = await start(async () => {
      passes++;
      return outcome;
    });
    store.put(configMap('a', '1'));
    sync();
    await settle();
    for (let s = 0; s < 60; s++) {
      clock.advance(1_000);
      await settle();
    }
    expect(passes).toBe(passesInAMinute);
    await close();
  });

  test('repeats a pass that throws, ever later, and reports a lasting failure once', async () => {
    const at: number[] = [];
    const { store, sync, clock, close, errors } = await start(async () => {
      at.push(clock.now());
      if (at.length < 6) throw new AppError('kube_forbidden', 'no right to list pods');
      return settled;
    });
    store.put(configMap('a', '1'));
    sync();
    for (let ms = 0; ms < 3_000; ms += 10) {
      await settle();
      clock.advance(10);
    }
    expect(at.slice(1).map((time, i) => time - (at[i] ?? 0))).toEqual([50, 100, 200, 400, 800]);
    expect(errors).toEqual(['reconcile failed no right to list pods']);
    await close();
  });

  test('repeats a pass that wants an object in a namespace that is being deleted, and reports no failure', async () => {
    const message =
      'secrets "gw" is forbidden: unable to create new content in namespace shop because it is being terminated';
    const causes = [
      { reason: 'NamespaceTerminating', message: 'namespace shop is being terminated', field: 'metadata.namespace' },
    ];
    const answer = { kind: 'Status', reason: 'Forbidden', code: 403, message, details: { causes } };
    let passes = 0;
    const { store, sync, clock, close, errors } = await start(async () => {
      passes += 1;
      throw statusError(403, JSON.stringify(answer));
    });
    store.put(configMap('a', '1'));
    sync();
    for (let ms = 0; ms < 1_000; ms += 10) {
      await settle();
      clock.advance(10);
    }
    expect(passes).toBeGreaterThan(2);
    expect(errors).toEqual([]);
    await close();
  });

  test('comes back to a key that failed because a server was away as soon as that server answers, and not to one that failed otherwise', async () => {
    const tracker = new OutageTracker();
    let away = true;
    const after: string[] = [];
    const { store, sync, clock, close } = await start(async (key) => {
      if (!away) after.push(key);
      if (key === 'n/other') throw new AppError('kube_forbidden', 'no right to list pods');
      if (away) throw new AppError('internal', 'no session', { cause: happenedOn(tracker, refused()) });
      return settled;
    });
    const refused = () => new AppError('kube_unreachable', 'connection refused');
    store.put(configMap('a', '1'));
    store.put(configMap('other', '1'));
    sync();
    tracker.failed(clock.now());
    // Both wait for most of a minute by now.
    for (let ms = 0; ms < 60_000; ms += 50) {
      await settle();
      clock.advance(50);
    }
    away = false;
    tracker.answered(clock.now());
    for (let ms = 0; ms < 300; ms += 50) {
      await settle();
      clock.advance(50);
    }
    expect(after).toEqual(['n/a']);
    await close();
  });

  test('says nothing about a lost race', async () => {
    let passes = 0;
    const { store, sync, clock, close, errors } = await start(async () => {
      if (++passes === 1) throw new AppError('kube_conflict', 'the object has been modified');
      return settled;
    });
    store.put(configMap('a', '1'));
    sync();
    await settle();
    clock.advance(50);
    await settle();
    expect(passes).toBe(2);
    expect(errors).toEqual([]);
    await close();
  });

  test('looks at everything again within its resync period, although nothing happened', async () => {
    const seen: string[] = [];
    const { store, sync, clock, close } = await start(
      async (key) => {
        seen.push(key);
        return settled;
      },
      { resyncMs: 60_000 },
    );
    store.put(configMap('a', '1'));
    sync();
    await settle();
    seen.length = 0;
    for (let s = 0; s < 75; s++) {
      clock.advance(1_000);
      await settle();
    }
    expect(seen).toEqual(['n/a']);
    await close();
  });

  test('ends only when the running pass has ended, whose signal has aborted', async () => {
    let finish: () => void = () => undefined;
    let aborted = false;
    const { store, sync, stop } = await start(async (_key, signal) => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      aborted = signal.aborted;
      return settled;
    });
    store.put(configMap('a', '1'));
    sync();
    await settle();
    stop.abort();
    await settle();
    finish();
    await settle();
    expect(aborted).toBe(true);
  });

  test('that was stopped can run again, as after lost leadership', async () => {
    const seen: string[] = [];
    const { store, sync, close, controller } = await start(async (key) => {
      seen.push(key);
      return settled;
    });
    store.put(configMap('a', '1'));
    sync();
    await settle();
    await close();
    seen.length = 0;
    const stop = new AbortController();
    const running = controller.run(stop.signal);
    await settle();
    expect(seen).toEqual(['n/a']);
    stop.abort();
    await running;
  });
});
