/** A cluster of one node runs one process of ours beside the tunnel; what happens when it grows. */
import { afterAll, describe, expect, test } from 'vitest';
import { daemonSets, nodes } from '#shared/domain/core-kinds.ts';
import { eventually } from '#test/harness/eventually.ts';
import { residentMiB } from '#test/harness/resident.ts';
import { clusterNames, patience, provider, type Stage } from '../stage.ts';

const mostMiB = 150;
const second = 'second';
const fabric = { namespace: 'liqo', name: 'isthmus-fabric' };

export function oneProcess(on: () => Stage): void {
  describe('a cluster of one node with one link', () => {
    afterAll(() => on().api(provider).delete(nodes, { name: second }));

    test.each(clusterNames)(`holds everything of ours in ${mostMiB} MiB in %s`, (cluster) => {
      const pids = on().world.ownPids(cluster);
      expect([pids.agent.length, pids.node.length, pids.gateway.length]).toEqual([1, 0, 1]);
      const mib = Object.values(pids).map(residentMiB);
      console.log(`${cluster}: ${mib.map((one) => one.toFixed(0)).join(' + ')} MiB`);
      expect(mib.reduce((sum, one) => sum + one, 0)).toBeLessThan(mostMiB);
    });

    test('has a node process for each further node', async () => {
      const api = on().api(provider);
      const wanted = async () => (await api.get(daemonSets, fabric))?.status?.desiredNumberScheduled;
      expect(await wanted()).toBe(0);
      await api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: second } });
      await eventually('the DaemonSet wants one there', async () => (await wanted()) === 1, patience);
    });

    test('marks the node that it serves, and no other, whatever somebody writes', async () => {
      const api = on().api(provider);
      const mark = 'networking.isthmus.dev/node-process';
      const [{ name: served } = { name: '' }] = on().world.cluster(provider).nodes;
      for (const [name, value] of [
        [second, 'shared'],
        [served, null],
      ] as const)
        await api.mergePatch(nodes, { name }, { metadata: { labels: { [mark]: value } } });
      await eventually(
        'the marks are right again',
        async () => {
          const labelled = await api.list(nodes, { labelSelector: mark });
          return labelled.map(({ metadata }) => metadata.name).join() === served;
        },
        patience,
      );
    });
  });
}
