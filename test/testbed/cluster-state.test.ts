import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  assess,
  clusterDir,
  componentsOf,
  readRecords,
  removeClusterDir,
  unrecordedRemains,
  writeRecord,
} from './cluster-state.ts';
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

test('a cluster is broken when a node is gone or its creation never ended, even if processes of it run', () => {
  fc.assert(
    fc.property(fc.subarray([...inits, ...daemons]), (alive) => {
      const nodeGone = inits.some((name) => !alive.includes(name));
      expect(assess({ spec, phase: 'creating' }, running(alive)).state).toBe('broken');
      expect(assess({ spec, phase: 'ready' }, running(alive)).state === 'broken').toBe(nodeGone);
    }),
  );
});

test('folders of clusters are known without their record; one that holds anything else, or is recorded, is not among them', async () => {
  const bed = mkdtempSync(path.join(os.tmpdir(), 'isthmus-bed-'));
  try {
    writeRecord(bed, { spec, phase: 'ready' });
    for (const folder of ['rome/pki', 'half/pki', 'half/nodes/half-1/var', 'mine/pki'])
      mkdirSync(path.join(bed, folder), { recursive: true });
    writeFileSync(path.join(bed, 'half', 'scheduler.conf'), '');
    writeFileSync(path.join(bed, 'mine', 'notes.txt'), '');
    writeFileSync(path.join(bed, 'kubectl'), '');
    expect(unrecordedRemains(bed)).toEqual(['half']);
    for (const name of ['rome', 'half', 'never']) await removeClusterDir(bed, name);
    expect([existsSync(clusterDir(bed, 'rome')), readRecords(bed)]).toEqual([false, []]);
    expect(readdirSync(bed).sort()).toEqual(['kubectl', 'mine']);
  } finally {
    rmSync(bed, { recursive: true, force: true });
  }
});
