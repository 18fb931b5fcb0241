import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Condition, type ConditionInput, removeCondition, setCondition } from './conditions.ts';

const now = Date.UTC(2026, 5, 1, 12, 0, 0, 987);
const known: Condition = {
  type: 'Ready',
  status: 'True',
  reason: 'Fine',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

test('a new condition gets the time of now, in whole seconds', () => {
  const { lastTransitionTime: _time, ...input } = known;
  expect(setCondition(undefined, input, now)).toEqual([{ ...input, lastTransitionTime: '2026-06-01T12:00:00Z' }]);
});

test('a new reason does not move the time, a new status does', () => {
  const reworded = { ...known, reason: 'Better', message: 'quite' };
  expect(setCondition([known], reworded, now)).toEqual([reworded]);
  const failed = { ...known, status: 'False' as const };
  expect(setCondition([known], failed, now)).toEqual([{ ...failed, lastTransitionTime: '2026-06-01T12:00:00Z' }]);
});

test('removal leaves the others', () => {
  const other: Condition = { ...known, type: 'Other', status: 'Unknown' };
  expect(removeCondition([known, other], 'Ready')).toEqual([other]);
});

const input: fc.Arbitrary<ConditionInput> = fc.record({
  type: fc.constantFrom('Ready', 'Accepted', 'Resources'),
  status: fc.constantFrom('True', 'False', 'Unknown'),
  reason: fc.constantFrom('A', 'B'),
  message: fc.constantFrom('', 'because'),
});

test('setting several twice is setting them once, and what changes nothing returns the very same list', () => {
  const set = (list: readonly Condition[], inputs: readonly ConditionInput[], at: number) =>
    inputs.reduce((all, one) => setCondition(all, one, at), list);
  fc.assert(
    fc.property(fc.array(input), fc.uniqueArray(input, { selector: (one) => one.type }), (before, inputs) => {
      const start = set([], before, 0);
      const once = set(start, inputs, now);
      expect(set(once, inputs, now + 60_000)).toBe(once);
      expect(new Set(once.map((condition) => condition.type)).size).toBe(once.length);
      for (const wanted of inputs) expect(once).toContainEqual(expect.objectContaining(wanted));
    }),
  );
});
