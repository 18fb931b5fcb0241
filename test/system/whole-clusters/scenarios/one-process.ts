/** A cluster of one node runs one process of ours beside the tunnel; what happens when it grows. */
import { afterAll, describe, expect, test } from 'vitest';
import { daemonSets, endpointSlices, nodes } from '#shared/domain/core-kinds.ts';
import { eventually } from '#test/harness/eventually.ts';
import { NetnsFixture } from '#test/harness/netns.ts';
import { type Ended, run } from '#test/harness/program.ts';
import { residentMiB } from '#test/harness/resident.ts';
import { nodePlace, type Place, podPlace } from '../../network/test-pods.ts';
import { clusterNames, isRunning, patience, provider, reported, type Stage } from '../stage.ts';
import { container, pod } from '../workloads.ts';

const mostMiB = 150;
const second = 'second';
const fabric = { namespace: 'liqo', name: 'isthmus-fabric' };
const foreignOwner = 'stranger';
const webhookPort = 11_249;

/** An HTTPS request by the machine's own curl in the network of `from`. */
const called = ({ netns }: Place, address: string): Promise<Ended> =>
  run('nsenter', ['-t', String(netns.pid), '-n', 'curl', '-ksS', '-m', '5', `https://${address}:${webhookPort}/`]);

export function oneProcess(on: () => Stage): void {
  describe('a cluster of one node with one link', () => {
    afterAll(() => on().api(provider).delete(nodes, { name: second }));

    test.each(clusterNames)(`holds everything of ours in ${mostMiB} MiB in %s`, async (cluster) => {
      // What a peering took while it was made is given back at V8's next opportunity.
      await eventually(
        `less than ${mostMiB} MiB`,
        () => {
          const pids = on().world.ownPids(cluster);
          expect([pids.agent.length, pids.node.length, pids.gateway.length]).toEqual([1, 0, 1]);
          const mib = Object.values(pids).map(residentMiB);
          const reported = `${cluster}: ${mib.map((one) => one.toFixed(0)).join(' + ')} MiB`;
          if (mib.reduce((sum, one) => sum + one, 0) >= mostMiB) throw new Error(reported);
          console.log(reported);
          return true;
        },
        { ...patience, everyMs: 1_000 },
      );
    });

    test('answers calls to its webhooks from the node, where the API server stands, and ends those of a pod before TLS begins', async () => {
      const [node] = on().world.cluster(provider).nodes;
      if (node === undefined) throw new Error(`${provider} has no node`);
      const slices = await on().api(provider).list(endpointSlices, {
        namespace: 'default',
        labelSelector: 'kubernetes.io/service-name=kubernetes',
      });
      expect(slices.flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses))).toEqual([
        node.ip,
      ]);
      const netns = new NetnsFixture();
      try {
        await on().apply(
          provider,
          { apiVersion: 'v1', kind: 'Namespace', metadata: { name: foreignOwner } },
          pod(foreignOwner, foreignOwner, [container(['pause'])]),
        );
        const inside = podPlace(netns, await on().podThat(provider, [foreignOwner, foreignOwner], 'runs', isRunning));
        const onNode = nodePlace(netns, on().world.bed.dir, node);
        const answered = await called(onNode, node.ip);
        // The server's own words: this call does not know the secret part of the webhooks' path.
        expect(answered.stdout, reported(answered)).toContain('nothing is here');
        const refused = await called(inside, node.ip);
        expect(refused.stdout, reported(refused)).toBe('');
        // Of curl: the connection was there, and no TLS came of it.
        expect([35, 56], reported(refused)).toContain(refused.code);
      } finally {
        await netns.close();
        await on().deleteNamespaces(provider, foreignOwner);
      }
    });

    test('has a node process for each further node', async () => {
      const api = on().api(provider);
      const wanted = async () => (await api.get(daemonSets, fabric))?.status?.desiredNumberScheduled;
      expect(await wanted()).toBe(0);
      await api.create(nodes, {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: second, labels: { 'kubernetes.io/os': 'linux' } },
      });
      await eventually('the DaemonSet wants one there', async () => (await wanted()) === 1, patience);
    });

    test('marks the node that it serves, and no other, also after foreign writes', async () => {
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
