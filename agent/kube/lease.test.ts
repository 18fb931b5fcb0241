import { expect, test } from 'vitest';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { runAsLeader } from './lease.ts';
import type { KubeApi } from './types.ts';

test('a replica that may not take the lease says so once, instead of waiting in silence', async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const said: unknown[] = [];
  let looks = 0;
  const log: Log = {
    ...silentLog,
    with: () => log,
    warn: (message, fields) => void said.push([message, fields?.code]),
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
  expect(said).toEqual([['cannot look at the lease', 'kube_forbidden']]);
  stop.abort();
  await running;
});
