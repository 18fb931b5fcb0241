/** Updates whose agent does not become ready, while a pod runs offloaded: the command puts back what was there, and the pod does not notice. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deployments } from '#shared/domain/core-kinds.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { eventually } from '#test/harness/eventually.ts';
import { clusterNames, consumer, isRunning, patience, provider, reported, type Stage } from '../stage.ts';
import { container, pod } from '../workloads.ts';

const namespace = 'updated';
const agent = { namespace: systemNamespace, name: 'isthmus-agent' };

export function takenBackUpdates(on: () => Stage): void {
  describe('an update that fails', () => {
    beforeAll(async () => {
      await on().createNamespace(namespace);
      await on().mustOffload(namespace, '--strategy', 'Remote');
      await on().apply(consumer, pod(namespace, 'stays', [container(['pause'])]));
      await on().podThat(consumer, [namespace, 'stays'], 'runs', isRunning);
    });
    afterAll(async () => {
      const kubeconfig = ['--kubeconfig', on().world.cluster(consumer).kubeconfigPath];
      await on().world.mustIsthmus('unoffload', 'namespace', namespace, ...kubeconfig);
      await on().deleteNamespaces(consumer, namespace);
    });

    // No kubelet has the first image; the program of the second one knows no agent.
    test.each(
      clusterNames.flatMap((cluster) => [
        { cluster, image: 'isthmus.test/absent:1', why: /cannot get the image isthmus\.test\/absent:1/ },
        { cluster, image: 'isthmus.test/workload:1', why: /it ended with code [1-9]/ },
      ]),
    )('$cluster with image $image is taken back, and the offloaded pod runs on', async ({ cluster, image, why }) => {
      const before = await on().podThat(provider, [`${namespace}-${consumer}`, 'stays'], 'runs', isRunning);
      const now = async () => (await on().api(cluster).get(deployments, agent))?.spec?.template.spec?.containers[0];
      const former = await now();
      const ended = await on().world.isthmus(
        'join',
        cluster,
        '--kubeconfig',
        on().world.cluster(cluster).kubeconfigPath,
        '--image',
        image,
        '--timeout',
        '30s',
      );
      expect(ended.code, reported(ended)).toBe(8);
      expect(ended.stderr).toMatch(/rolled_back/);
      expect(ended.stderr).toMatch(why);
      expect(await now()).toEqual(former);
      await eventually(
        `the agent of ${cluster} to be available`,
        async () => ((await on().api(cluster).get(deployments, agent))?.status?.availableReplicas ?? 0) > 0,
        patience,
      );
      const after = await on().podThat(provider, [`${namespace}-${consumer}`, 'stays'], 'runs', isRunning);
      expect([after.metadata.uid, after.status?.containerStatuses?.[0]?.restartCount]).toEqual([
        before.metadata.uid,
        0,
      ]);
      await on().podThat(consumer, [namespace, 'stays'], 'runs', isRunning);
    });
  });
}
