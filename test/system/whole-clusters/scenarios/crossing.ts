/** What crosses the link: a pod at home and one next door call each other, by address and by Service, and `isthmus network test` finds the same. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { eventually } from '#test/harness/eventually.ts';
import { networkTest } from '../../network/network-test.ts';
import { clusterNames, consumer, isReady, patience, provider, reported, type Stage } from '../stage.ts';
import { container, pod } from '../workloads.ts';

const namespace = 'crossing';
const port = 8080;

export function crossing(on: () => Stage): void {
  let here: Pod;
  let there: Pod;
  const serving = (name: string, node: string) =>
    pod(namespace, name, [container(['serve'])], {
      labels: { app: name },
      nodeSelector: { 'kubernetes.io/hostname': node },
    });
  /** What the server at `host` calls the address of the pod that asks. */
  const seenBy = (from: Pod, host: string): Promise<string> =>
    eventually(
      `pod ${from.metadata.name} is answered by ${host}`,
      async () => {
        const get = ['exec', from.metadata.name, '--', 'get', `http://${host}/remote`];
        const ended = await on().kubectl(consumer, ['-n', namespace, ...get]);
        if (ended.code !== 0) throw new Error(reported(ended));
        return ended.stdout;
      },
      patience,
    );

  describe('the network between both clusters', () => {
    beforeAll(async () => {
      await on().createNamespace(namespace);
      await on().mustOffload(namespace, '--strategy', 'LocalAndRemote');
      const service = {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'there', namespace },
        spec: { selector: { app: 'there' }, ports: [{ port: 80, targetPort: port }] },
      } as KubeObject;
      await on().apply(consumer, serving('here', `${consumer}-1`), serving('there', provider), service);
      [here, there] = (await Promise.all(
        ['here', 'there'].map((name) => on().podThat(consumer, [namespace, name], 'is ready', isReady)),
      )) as [Pod, Pod];
    });
    afterAll(async () => {
      const target = ['--kubeconfig', on().world.cluster(consumer).kubeconfigPath];
      await on().world.mustIsthmus('unoffload', 'namespace', namespace, ...target);
      await on().deleteNamespaces(consumer, namespace);
    });

    test('lets a pod at home and a pod next door call each other, and each is seen by its own address', async () => {
      const [home, abroad] = [here.status?.podIP ?? 'none', there.status?.podIP ?? 'none'];
      expect(await seenBy(here, `${abroad}:${port}`)).toContain(home);
      expect(await seenBy(there, `${home}:${port}`)).toContain(abroad);
    });

    test('leads from a Service at home to its pod next door', async () => {
      const service = await on().api(consumer).get(services, { namespace, name: 'there' });
      expect(await seenBy(here, `${service?.spec?.clusterIP}`)).toContain(here.status?.podIP ?? 'none');
    });

    test('is found open by `isthmus network test`', async () => {
      const { code, rows, missing } = await networkTest(on().world, clusterNames, '--basic');
      expect(rows.filter(({ ok }) => !ok)).toEqual([]);
      expect(rows.length).toBeGreaterThan(0);
      expect([code, missing]).toEqual([0, []]);
    });
  });
}
