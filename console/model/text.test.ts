import { expect, test } from 'vitest';
import { labelsIn, left, quantities, relative, resourceNames, share, sumOf } from './text.ts';

const now = Date.UTC(2026, 10, 22, 12);
const at = (ms: number): string => new Date(now + ms).toISOString();

test.each([
  [-2_000, 'now'],
  [-59_000, '59 s ago'],
  [-61_000, '1 min ago'],
  [-3_600_000, '1 h ago'],
  [-49 * 3_600_000, '2 d ago'],
  [90_000, 'in 1 min'],
])('%i ms from now reads as %s', (ms, text) => {
  expect(relative(at(ms), now)).toBe(text);
});

test('resources are listed by cpu, memory, pods, then by name', () => {
  expect(resourceNames({ 'nvidia.com/gpu': '1', pods: '1' }, { cpu: '1', memory: '1Gi' })).toEqual([
    'cpu',
    'memory',
    'pods',
    'nvidia.com/gpu',
  ]);
  expect(quantities({ memory: '2Gi', cpu: '2' })).toBe('cpu 2, memory 2Gi');
  expect(quantities({}, 'nothing')).toBe('nothing');
});

test('grants add up as Kubernetes adds quantities', () => {
  expect(sumOf([{ cpu: '500m', memory: '1Gi' }, { cpu: '1500m' }, { memory: '1Gi' }])).toEqual({
    cpu: '2',
    memory: '2Gi',
  });
});

test.each([
  ['1', '4', 0.25],
  ['500m', '1', 0.5],
  ['9', '4', 1],
  ['1', '0', undefined],
  ['1Gi', '2Gi', 0.5],
])('%s of %s is a share of %s', (part, whole, is) => {
  expect(share(part, whole)).toBe(is);
});

test.each([
  ['1', '4', '3'],
  ['1Gi', '2Gi', '1Gi'],
  ['500m', '1', '500m'],
  ['5', '4', undefined],
  ['some', '4', undefined],
])('of %s of %s is left %s', (part, whole, is) => {
  expect(left(part, whole)).toBe(is);
});

test('labels are read as KEY=VALUE, and the one that is none is named', () => {
  expect(labelsIn('tier=gold, env=a=b')).toEqual({ tier: 'gold', env: 'a=b' });
  expect(labelsIn(' ')).toEqual({});
  expect(() => labelsIn('tier=gold, odd')).toThrow('"odd"');
});
