/** The end of a peering with both clusters up: nothing of it is left anywhere. */
import { describe, expect, test } from 'vitest';
import { namespaces, pods } from '#shared/domain/core-kinds.ts';
import { nothingLeft } from '../inventory.ts';
import { type ClusterName, clusterNames, consumer, isRunning, provider, reported, type Stage } from '../stage.ts';

/** What a user made stays; what stands for it next door does not. */
export const ofUser =
  (namespaceNames: readonly string[]) =>
  (line: string): boolean =>
    namespaceNames.some(
      (name) =>
        line.split(' ')[1]?.startsWith(`${name}/`) ||
        line.startsWith(`namespaces ${name} `) ||
        line === `namespaces ${name}`,
    );

export const boundToProvider = async (on: Stage): Promise<string[]> =>
  (await on.api(consumer).list(pods, { fieldSelector: `spec.nodeName=${provider}` })).map(
    ({ metadata }) => `${metadata.namespace}/${metadata.name}`,
  );

export function unpeering(on: () => Stage): void {
  const leavesNothing = (cluster: ClusterName, isUsers?: (line: string) => boolean): Promise<void> =>
    nothingLeft(cluster, on().api(cluster), on().baseline[cluster], isUsers);
  const userNamespaces = ['at-home', 'abroad', 'anywhere'];

  describe('unpeering with both clusters up', () => {
    test('ends with pods running, and leaves nothing on either side', async () => {
      await on().podThat(consumer, ['abroad', 'ready'], 'runs', isRunning);
      expect(await boundToProvider(on())).not.toEqual([]);
      const started = performance.now();
      const ended = await on().world.isthmus('unpeer', consumer, provider, '--wait');
      const tookMs = performance.now() - started;
      console.log(`unpeer --wait took ${(tookMs / 1_000).toFixed(1)} s`);
      expect(ended.code, reported(ended)).toBe(0);
      expect(ended.stdout).toContain('peering rome -> milan is gone');
      expect(ended.stderr).not.toContain('left behind');
      for (const cluster of clusterNames)
        await leavesNothing(cluster, cluster === consumer ? ofUser(userNamespaces) : undefined);
      expect(await boundToProvider(on())).toEqual([]);
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
}
