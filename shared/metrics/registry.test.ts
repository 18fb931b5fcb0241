import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as definitions from './definitions.ts';
import { type MetricDefinition, Registry } from './registry.ts';

const counter = { name: 'a_total', type: 'counter', help: 'A.', labels: ['x'] } as const;
const gauge = { name: 'b', type: 'gauge', help: 'B.', labels: ['x'] } as const;
const histogram = { name: 'c_seconds', type: 'histogram', help: 'C.', labels: [], buckets: [1, 2.5] } as const;

describe('the text of a registry', () => {
  test('has counters, gauges and cumulative buckets, and leaves families without samples out', () => {
    const registry = new Registry();
    registry.add(counter, { x: 'one' });
    registry.add(counter, { x: 'one' }, 2);
    registry.set(gauge, { x: 'say "hi"\n\\' }, 0.5);
    for (const value of [0.5, 2, 2.5, 9]) registry.observe(histogram, {}, value);
    registry.collect({ ...gauge, name: 'empty' }, () => []);
    expect(registry.text()).toBe(
      [
        '# HELP a_total A.',
        '# TYPE a_total counter',
        'a_total{x="one"} 3',
        '# HELP b B.',
        '# TYPE b gauge',
        String.raw`b{x="say \"hi\"\n\\"} 0.5`,
        '# HELP c_seconds C.',
        '# TYPE c_seconds histogram',
        'c_seconds_bucket{le="1"} 1',
        'c_seconds_bucket{le="2.5"} 3',
        'c_seconds_bucket{le="+Inf"} 4',
        'c_seconds_sum 14',
        'c_seconds_count 4',
        '',
      ].join('\n'),
    );
  });

  test('asks collectors at each scrape, sums equal labels, and forgets what has ended', () => {
    const registry = new Registry();
    let value = 1;
    const end = registry.collect(gauge, () => [[{ x: 'a' }, value]]);
    registry.collect(gauge, () => [[{ x: 'a' }, 10]]);
    registry.add(counter, { x: 'gone' });
    registry.add(counter, { x: 'here' });
    value = 2;
    expect(registry.text()).toContain('b{x="a"} 12\n');
    end();
    registry.forget(counter, ({ x }) => x === 'gone');
    expect(registry.text()).toContain('b{x="a"} 10\n');
    expect(registry.text()).not.toContain('gone');
  });

  test('has one line for each sample, for any text in its labels', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string(), { maxLength: 20 }), (names) => {
        const registry = new Registry();
        for (const x of names) registry.set(gauge, { x }, 1);
        expect(
          registry
            .text()
            .split('\n')
            .filter((line) => line.startsWith('b{')),
        ).toHaveLength(names.length);
      }),
    );
  });
});

describe('the definitions', () => {
  const all: readonly MetricDefinition[] = Object.values(definitions).flatMap((group) => Object.values(group));

  test('have names once each, of ours, of Liqo or of processes', () => {
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
    for (const { name } of all) expect(name).toMatch(/^(liqo|isthmus|process)_[a-z_]+$/);
  });

  test('of ours follow the conventions of Prometheus', () => {
    for (const { name, type, help, labels, buckets } of all.filter(({ name }) => !name.startsWith('liqo_'))) {
      expect(name.endsWith('_total'), name).toBe(type === 'counter');
      expect(help, name).toMatch(/^.+\.$/);
      expect(labels, name).not.toContain('le');
      expect(buckets !== undefined, name).toBe(type === 'histogram');
    }
  });
});
