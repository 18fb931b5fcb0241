/** Waits become events when they last, stalls at once. */
import { expect, test } from 'vitest';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { createExplain } from './wait-events.ts';

const object: KubeObject = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', uid: 'u' } };
function setUp() {
  const clock = new ManualClock();
  const said: string[] = [];
  const explain = createExplain(
    { emit: (_regarding, type, reason, message) => said.push(`${type} ${reason} ${message}`) },
    clock,
  );
  return { clock, said, explain };
}

test('a short wait says nothing and is looked at again when it begins to matter', () => {
  const { said, explain, clock } = setUp();
  expect(explain(object, waiting('the peer', 60_000))).toEqual(waiting('the peer', 3_000));
  clock.advance(1_000);
  explain(object, settled);
  expect(said).toEqual([]);
});

test('a wait that lasts is explained, and keeps its own pace', () => {
  const { said, explain, clock } = setUp();
  explain(object, waiting('the peer', 60_000));
  clock.advance(3_000);
  expect(explain(object, waiting('the peer', 60_000))).toEqual(waiting('the peer', 60_000));
  expect(said).toEqual(['Normal Waiting waiting for the peer']);
});

test('another reason restarts the wait', () => {
  const { said, explain, clock } = setUp();
  explain(object, waiting('the peer', 60_000));
  clock.advance(3_000);
  explain(object, waiting('the key', 60_000));
  expect(said).toEqual([]);
});

test('a stall is explained at once', () => {
  const { said, explain } = setUp();
  explain(object, stalled('Wrong', 'correct it'));
  expect(said).toEqual(['Warning Wrong correct it']);
});

test('a look before its time does not put the explanation off', () => {
  const { said, explain, clock } = setUp();
  explain(object, waiting('the peer', 60_000));
  clock.advance(2_999);
  expect(explain(object, waiting('the peer', 60_000))).toEqual(waiting('the peer', 1));
  clock.advance(1);
  explain(object, waiting('the peer', 60_000));
  expect(said).toEqual(['Normal Waiting waiting for the peer']);
});

test('a wait without a pass for an hour is forgotten, and one with passes is not', () => {
  const { said, explain, clock } = setUp();
  const other: KubeObject = { ...object, metadata: { name: 'other', uid: 'v' } };
  explain(object, waiting('the peer', 60_000));
  for (let minute = 0; minute <= 60; minute++) {
    explain(other, waiting('the key', 60_000));
    clock.advance(60_000);
  }
  said.length = 0;
  explain(other, waiting('the key', 60_000));
  expect(said).toEqual(['Normal Waiting waiting for the key']);
  expect(explain(object, waiting('the peer', 60_000))).toEqual(waiting('the peer', 3_000));
});
