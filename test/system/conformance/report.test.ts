import { describe, expect, it } from 'vitest';
import {
  brokenBefore,
  focusOn,
  type GinkgoReport,
  inPieces,
  type Outcome,
  outcomesOf,
  selectedSpecs,
  shortcomings,
  staleReasons,
} from './report.ts';

const spec = (name: string, State: string, more: object = {}) => ({
  ContainerHierarchyTexts: ['[sig-node] Pods'],
  LeafNodeType: 'It',
  LeafNodeText: name,
  State,
  RunTime: 2_400_000_000,
  ...more,
});
const report: GinkgoReport = [
  {
    SpecReports: [
      { ...spec('', 'passed'), LeafNodeType: 'SynchronizedBeforeSuite' },
      spec('runs', 'passed'),
      spec('was not selected', 'skipped'),
      spec('has no node', 'skipped', { Failure: { Message: 'needs 2 nodes' } }),
      spec('breaks', 'failed', { Failure: { Message: 'no', Location: { FileName: '/a/pods.go', LineNumber: 9 } } }),
      spec('is cut off', 'interrupted'),
    ],
  },
];

describe("what Kubernetes' own suite says", () => {
  it('is passed, failed with its place, or not applicable with its words; specs that were not selected are left out', () => {
    expect(outcomesOf(report)).toEqual([
      { spec: '[sig-node] Pods runs', state: 'passed', seconds: 2, message: '' },
      { spec: '[sig-node] Pods has no node', state: 'not applicable', seconds: 2, message: 'needs 2 nodes' },
      { spec: '[sig-node] Pods breaks', state: 'failed', seconds: 2, message: 'pods.go:9: no' },
      { spec: '[sig-node] Pods is cut off', state: 'failed', seconds: 2, message: ': interrupted' },
    ]);
  });

  it('is, where it could not begin, why', () => {
    const begin = {
      ...spec('', 'failed', { Failure: { Message: 'no nodes' } }),
      LeafNodeType: 'SynchronizedBeforeSuite',
    };
    expect(brokenBefore([{ SpecReports: [begin] }])).toBe('no nodes');
    expect(brokenBefore(report)).toBeUndefined();
  });

  it('is, of a dry run, which specs there are', () => {
    expect(selectedSpecs(report)).toEqual(['[sig-node] Pods runs']);
  });
});

describe('a reason', () => {
  const reason = { specs: /breaks/, state: 'failed', reason: 'because' } as const;
  const passed = { spec: '[sig-node] Pods breaks', state: 'passed', seconds: 1, message: '' } as const;

  it('is stale when the suite has no such spec', () => {
    expect(staleReasons([reason], ['[sig-node] Pods runs'], [])).toHaveLength(1);
  });

  it('for a failure is stale when the spec passed', () => {
    expect(staleReasons([reason], [passed.spec], [passed])).toHaveLength(1);
    expect(staleReasons([reason], [passed.spec], [{ ...passed, state: 'failed' }])).toEqual([]);
    expect(staleReasons([{ ...reason, state: 'not applicable' }], [passed.spec], [])).toEqual([]);
  });
});

describe('a run', () => {
  const outcome: Outcome = { spec: 'a', state: 'passed', seconds: 1, message: '' };
  const run = { reasons: [], all: ['a', 'b', 'c'], outcomes: [outcome], given: ['a'], left: [] };

  it('falls short of specs that the suite is silent about, and of those that were left out for want of time', () => {
    expect(shortcomings(run)).toEqual([]);
    expect(shortcomings({ ...run, given: ['a', 'b'] })).toEqual(['the suite says nothing of b']);
    expect(shortcomings({ ...run, left: ['b', 'c'] })).toEqual([expect.stringMatching(/^2 specs were left out/)]);
  });
});

describe('pieces', () => {
  it('hold every spec once, and no more than was asked for', () => {
    const all = Array.from({ length: 11 }, (_, at) => `spec ${at}`);
    const pieces = inPieces(all, 4);
    expect(pieces.flat().sort()).toEqual([...all].sort());
    expect(pieces.every((piece) => piece.length <= 4)).toBe(true);
    expect(inPieces([], 4)).toEqual([]);
  });

  it('are asked for by names that a regular expression takes literally', () => {
    expect(focusOn(['[sig-node] a.b (c)', 'd'])).toBe(String.raw`^Kubernetes e2e suite (\[sig-node\] a\.b \(c\)|d)$`);
  });
});
