import { expect, test } from 'vitest';
import type { KubeEvent } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { createEventRecorder } from './events.ts';
import { sharedByMany } from './linked-abort.ts';
import type { KubeApi } from './types.ts';

test('when a thousand pods start at once, what goes wrong with one of them is said before the good news, and the good news end soon', async () => {
  const clock = new ManualClock(0);
  const stop = new AbortController();
  sharedByMany(stop.signal);
  const written: KubeEvent[] = [];
  const api = { create: async (_: unknown, event: KubeEvent) => void written.push(event) } as unknown as KubeApi;
  const author = { reportingController: 'isthmus-test', reportingInstance: 'isthmus-test-0' };
  const recorder = createEventRecorder({ api, clock, log: silentLog }, author, stop.signal);
  const pod = (i: number): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'demo', name: `pod-${i}`, uid: `uid-${i}` },
  });
  for (let i = 0; i < 1_000; i++) recorder.emit(pod(i), 'Normal', 'Started', 'it runs');
  recorder.emit(pod(1_000), 'Warning', 'Refused', 'no quota');
  await expect.poll(() => written.some(({ reason }) => reason === 'Refused')).toBe(true);
  expect(clock.now()).toBe(0);
  for (let s = 0; s < 120; s++) {
    clock.advance(1_000);
    await new Promise(setImmediate);
  }
  const good = written.filter(({ reason }) => reason === 'Started').length;
  expect(good).toBeGreaterThan(50);
  expect(good).toBeLessThanOrEqual(200);
  stop.abort();
});
