/** The selector algebra against the scheduler's semantics. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  bothTerms,
  inPod,
  matchesTerms,
  type NodeFacts,
  type NodeSelectorTerm,
  nodeSelectorProblem,
  selectsCluster,
} from './node-selector.ts';

const key = fc.constantFrom('zone', 'gpu', 'liqo.io/type', 'size');
const value = fc.constantFrom('a', 'b', 'virtual-node', '3', '7');
const requirement = fc.oneof(
  fc.record({ key, operator: fc.constantFrom('In', 'NotIn'), values: fc.array(value, { minLength: 1, maxLength: 2 }) }),
  fc.record({ key, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
  fc.record({ key, operator: fc.constantFrom('Gt', 'Lt'), values: fc.constantFrom('3', '5').map((v) => [v]) }),
);
const field = fc.record({
  key: fc.constant('metadata.name'),
  operator: fc.constantFrom('In', 'NotIn'),
  values: fc.constantFrom('n1', 'n2').map((v) => [v]),
});
const term: fc.Arbitrary<NodeSelectorTerm> = fc.record(
  { matchExpressions: fc.array(requirement, { maxLength: 2 }), matchFields: fc.array(field, { maxLength: 1 }) },
  { requiredKeys: [] },
);
const terms = fc.array(term, { minLength: 1, maxLength: 3 });
const node: fc.Arbitrary<NodeFacts> = fc.record({
  name: fc.constantFrom('n1', 'n2'),
  labels: fc.dictionary(key, value, { maxKeys: 4 }),
});

describe('node selectors', () => {
  test('a node satisfies the conjunction if and only if it satisfies both', () => {
    fc.assert(
      fc.property(terms, terms, node, (a, b, n) => {
        expect(matchesTerms(n, bothTerms(a, b))).toBe(matchesTerms(n, a) && matchesTerms(n, b));
      }),
      { numRuns: 3000 },
    );
  });

  test('the conjunction of well-formed selectors is well formed and never without terms', () => {
    fc.assert(
      fc.property(terms, terms, (a, b) => {
        const both = bothTerms(a, b);
        expect(both.length).toBeGreaterThan(0);
        expect(nodeSelectorProblem({ nodeSelectorTerms: both })).toBeUndefined();
      }),
    );
  });

  test('two terms times two terms are four', () => {
    const exists = (k: string): NodeSelectorTerm => ({ matchExpressions: [{ key: k, operator: 'Exists' }] });
    expect(bothTerms([exists('a'), exists('b')], [exists('c'), exists('d')])).toHaveLength(4);
  });

  test('a cluster selector without terms selects every cluster', () => {
    const rome = { name: 'rome', labels: {} };
    expect(selectsCluster(rome, undefined)).toBe(true);
    expect(selectsCluster(rome, { nodeSelectorTerms: [] })).toBe(true);
    expect(selectsCluster(rome, { nodeSelectorTerms: [{}] })).toBe(false);
  });

  test('In without values, by which liqoctl selects no cluster, is well formed, matches no node, and in a pod is the empty term', () => {
    const none = [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [] as string[] }] }];
    expect(nodeSelectorProblem({ nodeSelectorTerms: none })).toBeUndefined();
    expect(matchesTerms({ name: 'rome', labels: { zone: 'a' } }, none)).toBe(false);
    expect(inPod(none)).toEqual([{}]);
    const some = [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }];
    expect(inPod(some)).toEqual(some);
  });

  test.each([
    [{ key: 'zone', operator: 'NotIn' }, /matchExpressions\[0\].*NotIn on key zone needs at least one value/],
    [{ key: 'zone', operator: 'Exists', values: ['x'] }, /takes no values/],
    [{ key: 'zone', operator: 'Gt', values: ['many'] }, /exactly one integer/],
    [{ key: 'zone', operator: 'in', values: ['x'] }, /"in" on key zone is unknown/],
    [{ key: 'my zone', operator: 'Exists' }, /"my zone" is not a label key/],
    [{ key: 'zone', operator: 'In', values: ['a b'] }, /"a b" of key zone is not a label value/],
  ])('%j is refused with its path', (bad, expected) => {
    expect(nodeSelectorProblem({ nodeSelectorTerms: [{ matchExpressions: [bad] }] })).toMatch(expected);
  });
});
