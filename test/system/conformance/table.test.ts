import { expect, it } from 'vitest';
import { openSpecs, rowOf, unexplained, withRows } from './table.ts';

const outcome = (spec: string, state: 'passed' | 'failed' | 'not applicable', message = '') => ({
  spec,
  state,
  seconds: 1,
  message,
});
const reasons = [{ specs: /breaks/, state: 'failed', reason: 'a | b' }] as const;
const page = 'before\n<!-- all nodes virtual: begin -->\n<!-- all nodes virtual: end -->\nafter\n';

it('gives each spec its reason: ours, the words of the suite, or none yet', () => {
  expect(rowOf(outcome('[sig-node] runs', 'passed'), reasons).reason).toBe('');
  expect(rowOf(outcome('[sig-node] breaks', 'failed', 'x'), reasons).reason).toBe('a | b');
  expect(rowOf(outcome('[sig-node] other', 'failed', 'x'), reasons).reason).toBe(unexplained);
  expect(rowOf(outcome('[sig-node] skips', 'not applicable', 'needs\n2 nodes'), reasons).reason).toBe(
    'the suite: needs 2 nodes',
  );
});

it('tells of a spec that passed what it depends on, where that is the place of its pods', () => {
  const placement = [{ specs: /asks/, state: 'placement', reason: 'by place' }] as const;
  const passed = rowOf(outcome('[sig-network] asks', 'passed'), placement);
  expect(passed).toEqual({ spec: '[sig-network] asks', state: 'passed', reason: 'by place' });
  expect(rowOf(outcome('[sig-network] asks', 'failed'), placement).reason).toBe('by place');
  const all = [passed.spec];
  const written = withRows('all nodes virtual', page, [passed], all, placement);
  expect(written).toContain('| [sig-network] asks | passed | by place |');
  expect(openSpecs('all nodes virtual', written, all)).toEqual([]);
});

it('keeps the rows of specs that did not run this time, and drops those that the suite has no more', () => {
  const all = ['[sig-node] breaks', '[sig-node] runs <x>', '[sig-apps] waits'];
  const old = { spec: '[sig-apps] gone', state: 'passed', reason: '' } as const;
  const rows = [old, rowOf(outcome('[sig-node] breaks', 'failed'), reasons)];
  const first = withRows('all nodes virtual', page, rows, [...all, old.spec], reasons);
  const second = withRows(
    'all nodes virtual',
    first,
    [rowOf(outcome('[sig-node] runs <x>', 'passed'), reasons)],
    all,
    reasons,
  );
  expect(second).not.toContain('[sig-apps] gone');
  expect(second).toContain(String.raw`| [sig-node] breaks | failed | a \| b |`);
  expect(second).toContain('| [sig-node] runs &lt;x> | passed |  |');
  expect(second).toContain('| sig-node | 1 | 1 | 0 | 0 |');
  expect(second).toContain('| sig-apps | 0 | 0 | 0 | 1 |');
  expect(withRows('all nodes virtual', second, [], all, reasons)).toBe(second);
  expect(withRows('all nodes virtual', second, [], all, [{ ...reasons[0], reason: 'c' }])).toContain(
    '| [sig-node] breaks | failed | c |',
  );
});

it('goes on with the specs that have no row, and with failures that are not explained', () => {
  const all = ['[sig-node] breaks', '[sig-node] runs <x>', '[sig-node] other', '[sig-apps] waits'];
  const rows = [
    rowOf(outcome('[sig-node] runs <x>', 'passed'), reasons),
    rowOf(outcome('[sig-node] breaks', 'failed'), reasons),
    rowOf(outcome('[sig-node] other', 'failed', 'x'), reasons),
  ];
  expect(openSpecs('all nodes virtual', withRows('all nodes virtual', page, rows, all, reasons), all)).toEqual([
    '[sig-node] other',
    '[sig-apps] waits',
  ]);
  expect(openSpecs('all nodes virtual', page, all)).toEqual(all);
});

it('sums up, of suites for a driver, the specs that do not apply by their reason, and leaves the other tables alone', () => {
  const suite = 'External Storage [Driver: liqo]';
  const all = [
    `${suite} [Testpattern: Dynamic PV (default fs)] volumes should store data`,
    `${suite} [Testpattern: Inline-volume (default fs)] volumes should store data`,
    `${suite} [Testpattern: Inline-volume (default fs)] subPath should support existing directory`,
  ];
  const inline = [{ specs: /Inline-volume/, state: 'not applicable', reason: 'no inline volumes' }] as const;
  const two = `${page}<!-- storage here: begin -->\n<!-- storage here: end -->\n`;
  const written = withRows('storage here', two, [rowOf(outcome(all[0] ?? '', 'passed'), inline)], all, inline);
  expect(written.slice(0, page.length)).toBe(page);
  expect(written).toContain('| volumes | 1 | 0 | 1 | 0 |');
  expect(written).toContain('| subPath | 0 | 0 | 1 | 0 |');
  expect(written).toContain('| 2 | no inline volumes |');
  expect(written).not.toContain('Inline-volume');
  expect(withRows('storage here', written, [], all, inline)).toBe(written);
});
