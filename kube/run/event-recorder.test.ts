import { expect, test } from 'vitest';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import type { KubeEvent } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { KubeApi } from '../model/types.ts';
import { createEventRecorder } from './event-recorder.ts';

const pod = (i: number): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'demo', name: `pod-${i}`, uid: `uid-${i}` },
});
const author = { reportingController: 'isthmus-test', reportingInstance: 'isthmus-test-0' };

/** Lets time pass in steps of a second, and everything happen that follows from it. */
async function pass(clock: ManualClock, seconds: number): Promise<void> {
  for (let s = 0; s < seconds; s++) {
    clock.advance(1_000);
    await new Promise(setImmediate);
  }
}

test('when a thousand pods start at once, what goes wrong with one of them is said before the good news, and the good news end soon', async () => {
  const clock = new ManualClock(0);
  const stop = new AbortController();
  sharedByMany(stop.signal);
  const written: KubeEvent[] = [];
  const api = { create: async (_: unknown, event: KubeEvent) => void written.push(event) } as unknown as KubeApi;
  const recorder = createEventRecorder({ api, clock, log: silentLog }, author, stop.signal);
  for (let i = 0; i < 1_000; i++) recorder.emit(pod(i), 'Normal', 'Started', 'it runs');
  recorder.emit(pod(1_000), 'Warning', 'Refused', 'no quota');
  await expect.poll(() => written.some(({ reason }) => reason === 'Refused'), { timeout: 30_000 }).toBe(true);
  expect(clock.now()).toBe(0);
  await pass(clock, 120);
  const good = written.filter(({ reason }) => reason === 'Started').length;
  expect(good).toBeGreaterThan(50);
  expect(good).toBeLessThanOrEqual(200);
  stop.abort();
});

test.each([
  { what: 'is refused at first', refusal: 'kube_forbidden', emits: 2 },
  { what: 'gets no answer and does not recur', refusal: 'kube_unreachable', emits: 1 },
  { what: 'is deleted before it happens again', refusal: undefined, emits: 2 },
] as const)('what goes wrong is said in the end, also if its event $what', async ({ refusal, emits }) => {
  const clock = new ManualClock(0);
  const stop = new AbortController();
  sharedByMany(stop.signal);
  const there = new Map<string, KubeEvent>();
  let isRefused = refusal !== undefined;
  const api = {
    create: async (_: unknown, event: KubeEvent) => {
      if (refusal && isRefused) throw new AppError(refusal, 'not now');
      there.set(event.metadata.name, event);
    },
    mergePatch: async (_: unknown, { name }: { name: string }, patch: object) => {
      const known = there.get(name);
      if (known === undefined) throw new AppError('kube_not_found', 'gone', { detail: { name } });
      there.set(name, { ...known, ...patch });
    },
  } as unknown as KubeApi;
  const recorder = createEventRecorder({ api, clock, log: silentLog }, author, stop.signal);
  recorder.emit(pod(1), 'Warning', 'Refused', 'no quota');
  await pass(clock, 40);
  isRefused = false;
  there.clear();
  for (let i = 1; i < emits; i++) recorder.emit(pod(1), 'Warning', 'Refused', 'no quota');
  await pass(clock, 40);
  expect([...there.values()].map(({ reason, note }) => [reason, note])).toEqual([['Refused', 'no quota']]);
  stop.abort();
});

test('a namespace in which thousands of things go wrong keeps no other from saying what is wrong there', async () => {
  const clock = new ManualClock(0);
  const stop = new AbortController();
  sharedByMany(stop.signal);
  const written: string[] = [];
  const api = {
    create: async (_: unknown, { metadata }: KubeEvent) => void written.push(metadata.namespace ?? ''),
  } as unknown as KubeApi;
  const author = { reportingController: 'isthmus-test', reportingInstance: 'isthmus-test-0' };
  const recorder = createEventRecorder({ api, clock, log: silentLog }, author, stop.signal);
  const service = (namespace: string, i: number): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name: `service-${i}`, uid: `${namespace}-${i}` },
  });
  const refused = (namespace: string, count: number): void => {
    for (let i = 0; i < count; i++) recorder.emit(service(namespace, i), 'Warning', 'Refused', 'no');
  };
  refused('mad', 3_000);
  await expect.poll(() => written.length, { timeout: 30_000 }).toBe(50);
  refused('calm', 3);
  for (let s = 0; s < 10; s++) {
    clock.advance(1_000);
    await new Promise(setImmediate);
  }
  expect(written.filter((namespace) => namespace === 'calm')).toHaveLength(3);
  expect(written.length).toBeLessThan(75);
  stop.abort();
});
