/** The end of a peering whose provider is dead: its consumer gets free of it, and the agent of the provider finishes once its API server is back. */
import { afterAll, describe, expect, test } from 'vitest';
import { nodes } from '#shared/domain/core-kinds.ts';
import { eventually } from '#test/harness/eventually.ts';
import { leftovers, nothingLeft } from '../inventory.ts';
import {
  type ClusterName,
  clusterNames,
  consumer,
  isRunning,
  patience,
  provider,
  reported,
  type Stage,
} from '../stage.ts';
import { container, deployment, pod } from '../workloads.ts';
import { boundToProvider, ofUser } from './unpeering.ts';

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

export function deadProvider(on: () => Stage): void {
  const leavesNothing = (cluster: ClusterName, isUsers?: (line: string) => boolean): Promise<void> =>
    nothingLeft(cluster, on().api(cluster), on().baseline[cluster], isUsers);

  describe('unpeering from a provider whose API server is dead', () => {
    afterAll(async () => await on().world.cluster(provider).startApiServer());
    const namespace = 'stranded';

    test('ends at the consumer, and says what could not be cleaned', async () => {
      await on().mustPeer();
      await on().createNamespace(namespace);
      await on().mustOffload(namespace, '--strategy', 'Remote');
      await on().apply(
        consumer,
        pod(namespace, 'alone', [container(['pause'])]),
        deployment(namespace, 'several', 2, [container(['pause'])]),
      );
      await on().podThat(consumer, [namespace, 'alone'], 'runs', isRunning);
      await on().world.cluster(provider).stopApiServer();
      const started = performance.now();
      const ended = await on().world.isthmus('unpeer', consumer, provider, '--wait');
      const tookMs = performance.now() - started;
      console.log(`unpeer --wait from a dead provider took ${seconds(tookMs)}`);
      expect(ended.code, reported(ended)).toBe(0);
      expect(ended.stderr).toMatch(/left behind.*milan: /s);
      expect(ended.stderr).toContain('its agent');
      await leavesNothing(consumer, ofUser([namespace]));
      expect(await on().api(consumer).get(nodes, { name: provider })).toBeUndefined();
      expect(await boundToProvider(on())).toEqual([]);
    });

    test('is finished by the agent of the provider when its API server is back', async () => {
      await on().world.cluster(provider).startApiServer();
      const started = performance.now();
      await eventually(
        'nothing is left at the provider',
        async () => {
          const left = await leftovers(on().api(provider), on().baseline[provider]);
          if (left.length > 0) throw new Error(left.join('\n'));
          return true;
        },
        { withinMs: 240_000, everyMs: 500 },
      );
      console.log(
        `the agent of the provider finished ${seconds(performance.now() - started)} after its API server was back`,
      );
      await eventually(
        'the broker knows that nothing is left',
        async () => !(await on().world.mustIsthmus('describe', 'peering', consumer, provider)).includes('Left behind'),
        patience,
      );
    });

    test('does not stand in the way of peering again', async () => {
      // While its API server was down, no kubelet could say that its node is well.
      await eventually(
        'the nodes of the provider are Ready again',
        async () =>
          (await on().api(provider).list(nodes)).every((node) =>
            node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
          ),
        patience,
      );
      await on().mustPeer();
      await on().apply(consumer, pod(namespace, 'again', [container(['pause'])]));
      await on().podThat(consumer, [namespace, 'again'], 'runs', isRunning);
      await on().deleteNamespaces(consumer, namespace);
      await on().world.mustIsthmus('unpeer', consumer, provider, '--wait');
      for (const cluster of clusterNames) await leavesNothing(cluster);
    });
  });
}
