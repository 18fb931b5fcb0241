import { expect, test } from 'vitest';
import type { Lease } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import type { KubeApi } from '../model/types.ts';
import { microTime } from './event-recorder.ts';
import { runAsLeader } from './leader-election.ts';

test('a replica that may not take the lease says so once, instead of waiting in silence', async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const logged: unknown[] = [];
  let looks = 0;
  const log: Log = {
    ...silentLog,
    with: () => log,
    warn: (message, fields) => void logged.push([message, fields?.code]),
  };
  const api = {
    get: async () => {
      looks++;
      throw new AppError('kube_forbidden', 'leases.coordination.k8s.io is forbidden');
    },
  } as unknown as KubeApi;
  const lease = { namespace: 'liqo', name: 'isthmus-agent', identity: 'agent-0' };
  const running = runAsLeader({ api, clock, log }, lease, stop.signal, async () => undefined);
  while (looks < 5) {
    await new Promise(setImmediate);
    clock.advance(2_000);
  }
  expect(logged).toEqual([['cannot look at the lease', 'kube_forbidden']]);
  stop.abort();
  await running;
});

test('a term that would be over before it begins is not begun: the lease is renewed first', async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const logged: string[] = [];
  const log: Log = {
    ...silentLog,
    with: () => log,
    info: (message) => void logged.push(message),
    warn: (message) => void logged.push(message),
  };
  let stored: Lease | undefined;
  let slow = true;
  const write = async (_: unknown, lease: Lease): Promise<Lease> => {
    if (slow) clock.advance(12_000);
    slow = false;
    stored = lease;
    return lease;
  };
  const api = { get: async () => stored, create: write, update: write } as unknown as KubeApi;
  const lease = { namespace: 'liqo', name: 'isthmus-agent', identity: 'agent-0' };
  let terms = 0;
  await runAsLeader({ api, clock, log }, lease, stop.signal, async (signal) => {
    terms++;
    await new Promise(setImmediate);
    expect(signal.aborted).toBe(false);
    expect(stored?.spec).toMatchObject({ holderIdentity: 'agent-0', renewTime: microTime(clock.now()) });
  });
  expect(terms).toBe(1);
  expect(logged).toEqual(['leading', 'released the lease']);
});
