/** The end of a peering: nothing of it is left anywhere, also when a side was dead meanwhile. */
import { afterAll, describe, expect, test } from 'vitest';
import { namespaces, nodes, pods } from '#shared/domain/core-kinds.ts';
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

/** What a user made stays; what stands for it next door does not. */
const ofUser =
  (namespaceNames: readonly string[]) =>
  (line: string): boolean =>
    namespaceNames.some(
      (name) =>
        line.split(' ')[1]?.startsWith(`${name}/`) ||
        line.startsWith(`namespaces ${name} `) ||
        line === `namespaces ${name}`,
    );

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

export function unpeering(on: () => Stage): void {
  const boundToProvider = async (): Promise<string[]> =>
    (
      await on()
        .api(consumer)
        .list(pods, { fieldSelector: `spec.nodeName=${provider}` })
    ).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  const leavesNothing = (cluster: ClusterName, isUsers?: (line: string) => boolean): Promise<void> =>
    nothingLeft(cluster, on().api(cluster), on().baseline[cluster], isUsers);
  const userNamespaces = ['at-home', 'abroad', 'anywhere'];

  describe('unpeering with both clusters up', () => {
    test('ends soon, with pods running, and leaves nothing on either side', async () => {
      await on().podThat(consumer, ['abroad', 'ready'], 'runs', isRunning);
      expect(await boundToProvider()).not.toEqual([]);
      const started = performance.now();
      const ended = await on().world.isthmus('unpeer', consumer, provider, '--wait');
      const tookMs = performance.now() - started;
      console.log(`unpeer --wait took ${seconds(tookMs)}`);
      expect(ended.code, reported(ended)).toBe(0);
      expect(ended.stdout).toContain('peering rome -> milan is gone');
      expect(ended.stderr).not.toContain('left behind');
      for (const cluster of clusterNames)
        await leavesNothing(cluster, cluster === consumer ? ofUser(userNamespaces) : undefined);
      expect(await boundToProvider()).toEqual([]);
      // The aim is 10 s on a machine of its own (`npm run bench`); after 30 s of silence a side would be passed over.
      expect(tookMs).toBeLessThan(30_000);
    });

    test('twice does no harm', async () => {
      const again = await on().world.isthmus('unpeer', consumer, provider, '--wait');
      expect(again.stdout).toContain('is gone already');
      expect(again.code, reported(again)).toBe(0);
    });

    test('leaves namespaces that their user can take back from offloading, to the last mark', async () => {
      for (const name of userNamespaces) {
        await on().world.mustIsthmus(
          ...['unoffload', 'namespace', name, '--kubeconfig', on().world.cluster(consumer).kubeconfigPath],
        );
        const namespace = await on().api(consumer).get(namespaces, { name });
        expect(Object.keys(namespace?.metadata.labels ?? {}).filter((key) => key.includes('liqo.io'))).toEqual([]);
      }
      await on().deleteNamespaces(consumer, ...userNamespaces);
      for (const cluster of clusterNames) await leavesNothing(cluster);
    });
  });

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
      // The broker waits 50 s for a side that is dead.
      expect(tookMs).toBeLessThan(90_000);
      await leavesNothing(consumer, ofUser([namespace]));
      expect(await on().api(consumer).get(nodes, { name: provider })).toBeUndefined();
      expect(await boundToProvider()).toEqual([]);
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
      await on().mustPeer();
      await on().apply(consumer, pod(namespace, 'again', [container(['pause'])]));
      await on().podThat(consumer, [namespace, 'again'], 'runs', isRunning);
      await on().deleteNamespaces(consumer, namespace);
      await on().world.mustIsthmus('unpeer', consumer, provider, '--wait');
      for (const cluster of clusterNames) await leavesNothing(cluster);
    });
  });
}
