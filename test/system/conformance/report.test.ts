import { describe, expect, it } from 'vitest';
import type { Outcome } from '#test/harness/ginkgo-report.ts';
import { focusOn, inPieces, shortcomings, staleReasons } from './report.ts';

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

  it('of a spec that depends on where its pods go is not stale when it passed', () => {
    expect(staleReasons([{ ...reason, state: 'placement' }], [passed.spec], [passed])).toEqual([]);
    expect(staleReasons([{ ...reason, state: 'placement' }], ['[sig-node] Pods runs'], [])).toHaveLength(1);
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
