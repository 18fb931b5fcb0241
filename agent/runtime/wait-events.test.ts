/** Waits become events when they last, stalls at once. */
import { expect, test } from 'vitest';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { createReportWait } from './wait-events.ts';

const object: KubeObject = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', uid: 'u' } };
function setUp() {
  const clock = new ManualClock();
  const emitted: string[] = [];
  const reportWait = createReportWait(
    { emit: (_regarding, type, reason, message) => emitted.push(`${type} ${reason} ${message}`) },
    clock,
  );
  return { clock, emitted, reportWait };
}

test('a short wait says nothing and is looked at again when it begins to matter', () => {
  const { emitted, reportWait, clock } = setUp();
  expect(reportWait(object, waiting('the peer', 60_000))).toEqual(waiting('the peer', 3_000));
  clock.advance(1_000);
  reportWait(object, settled);
  expect(emitted).toEqual([]);
});

test('a wait that lasts is explained, and keeps its own pace', () => {
  const { emitted, reportWait, clock } = setUp();
  reportWait(object, waiting('the peer', 60_000));
  clock.advance(3_000);
  expect(reportWait(object, waiting('the peer', 60_000))).toEqual(waiting('the peer', 60_000));
  expect(emitted).toEqual(['Normal Waiting waiting for the peer']);
});

test('another reason restarts the wait', () => {
  const { emitted, reportWait, clock } = setUp();
  reportWait(object, waiting('the peer', 60_000));
  clock.advance(3_000);
  reportWait(object, waiting('the key', 60_000));
  expect(emitted).toEqual([]);
});

test('a stall is explained at once', () => {
  const { emitted, reportWait } = setUp();
  reportWait(object, stalled('Wrong', 'correct it'));
  expect(emitted).toEqual(['Warning Wrong correct it']);
});

test('a look before its time does not put the explanation off', () => {
  const { emitted, reportWait, clock } = setUp();
  reportWait(object, waiting('the peer', 60_000));
  clock.advance(2_999);
  expect(reportWait(object, waiting('the peer', 60_000))).toEqual(waiting('the peer', 1));
  clock.advance(1);
  reportWait(object, waiting('the peer', 60_000));
  expect(emitted).toEqual(['Normal Waiting waiting for the peer']);
});

test('a wait without a pass for an hour is forgotten, and one with passes is not', () => {
  const { emitted, reportWait, clock } = setUp();
  const other: KubeObject = { ...object, metadata: { name: 'other', uid: 'v' } };
  reportWait(object, waiting('the peer', 60_000));
  for (let minute = 0; minute <= 60; minute++) {
    reportWait(other, waiting('the key', 60_000));
    clock.advance(60_000);
  }
  emitted.length = 0;
  reportWait(other, waiting('the key', 60_000));
  expect(emitted).toEqual(['Normal Waiting waiting for the key']);
  expect(reportWait(object, waiting('the peer', 60_000))).toEqual(waiting('the peer', 3_000));
});
