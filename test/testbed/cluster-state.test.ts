import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assess, componentsOf } from './cluster-state.ts';
import { planCluster } from './spec.ts';

const spec = planCluster(0, 1, { name: 'rome', nodes: 3 });
const daemons = spec.nodes.flatMap(({ name }) => componentsOf(spec, name).map((component) => `${name}/${component}`));
const inits = spec.nodes.map(({ name }) => `${name}/init`);
const running = (names: readonly string[]): ReadonlyMap<string, number> =>
  new Map(names.map((name, i) => [name, i + 100]));

test('a cluster with everything running is whole', () => {
  expect(assess({ spec, phase: 'ready' }, running([...inits, ...daemons]))).toEqual({ state: 'whole' });
});

test('a cluster lacks exactly the daemons that do not run, as long as all nodes stand', () => {
  fc.assert(
    fc.property(fc.subarray(daemons, { minLength: 1 }), (dead) => {
      const health = assess(
        { spec, phase: 'ready' },
        running([...inits, ...daemons.filter((name) => !dead.includes(name))]),
      );
      const missing =
        health.state === 'lame' ? health.missing.map(({ node, component }) => `${node}/${component}`) : [];
      expect(missing).toEqual(dead);
    }),
  );
});

test('a cluster is broken when a node is gone or its creation never ended, whatever runs', () => {
  fc.assert(
    fc.property(fc.subarray([...inits, ...daemons]), (alive) => {
      const nodeGone = inits.some((name) => !alive.includes(name));
      expect(assess({ spec, phase: 'creating' }, running(alive)).state).toBe('broken');
      expect(assess({ spec, phase: 'ready' }, running(alive)).state === 'broken').toBe(nodeGone);
    }),
  );
});
