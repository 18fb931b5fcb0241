/** A cluster of the usual Kubernetes and one of each other version that the test bed can build: checked, joined, and each a provider of the other. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { oldestKubernetes } from '#shared/domain/kubernetes-version.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { openProductClusters, type ProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { run } from '#test/harness/program.ts';
import { buildKubernetes } from '#test/testbed/build.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { otherKubernetes } from '#test/testbed/spec.ts';
import { container, pod } from '../whole-clusters/workloads.ts';

vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
const patience = { withinMs: 120_000, everyMs: 500 } as const;

test('the oldest version that is accepted is among those that run here', () => {
  expect([...otherKubernetes].sort()[0]).toBe(oldestKubernetes);
});

describe.each(otherKubernetes)('Kubernetes %s beside the usual one', (version) => {
  const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', `versions-${version}`) };
  let world: ProductClusters;

  // In this order: each test finds what the ones before it left.
  inOrder('file');
  beforeAll(async () => {
    await removeProductClusters(place);
    // For minutes, once on a machine: not while clusters of other files wait to boot.
    await buildKubernetes(version, { log: (line) => console.error(line) });
    world = await openProductClusters({
      ...place,
      clusters: [{ name: 'rome' }, { name: 'milan', kubernetes: version }],
      brokerPort: 7695,
    });
  }, 1_800_000);
  afterAll(async () => await world?.close(), 180_000);

  const target = (name: string): string[] => ['--kubeconfig', world.cluster(name).kubeconfigPath];
  const kubectl = (name: string, ...args: readonly string[]): Promise<string> => world.cluster(name).kubectl(...args);
  async function apply(name: string, object: object): Promise<void> {
    const line = [...target(name), 'apply', '-f', '-'];
    await eventually(
      `${name} to take it`,
      async () => {
        const { code, stderr } = await run(path.join(world.bed.dir, 'kubectl'), line, {
          input: JSON.stringify(object),
        });
        if (code !== 0) throw new Error(stderr);
        return true;
      },
      patience,
    );
  }

  test('its nodes are of that version, the check finds nothing that stops it, and both join', async () => {
    const kubelet = 'jsonpath={.items[0].status.nodeInfo.kubeletVersion}';
    expect(await kubectl('milan', 'get', 'nodes', '-o', kubelet)).toMatch(new RegExp(`^v${version}\\.`));
    expect(await kubectl('rome', 'get', 'nodes', '-o', kubelet)).not.toMatch(new RegExp(`^v${version}\\.`));
    for (const name of ['rome', 'milan']) {
      await world.mustIsthmus('check', ...target(name));
      await world.join(name);
    }
  });

  test.each([
    ['rome', 'milan'],
    ['milan', 'rome'],
  ])(
    '%s borrows from %s: pods run there, answer over the link, and nothing of it is left afterwards',
    async (consumer, provider) => {
      await world.mustIsthmus('peer', consumer, provider, '--cpu', '2', '--memory', '2Gi', '--pods', '20', '--wait');
      for (const namespace of ['shop', 'home']) await kubectl(consumer, 'create', 'namespace', namespace);
      await world.mustIsthmus('offload', 'namespace', 'shop', '--strategy', 'Remote', ...target(consumer));
      const serve = [container(['serve'], { ports: [{ containerPort: 8080 }] })];
      await apply(consumer, pod('shop', 'far', serve, { labels: { app: 'far' } }));
      await apply(consumer, pod('home', 'near', serve, { labels: { app: 'near' } }));
      for (const [namespace, name] of [
        ['shop', 'far'],
        ['home', 'near'],
      ] as const) {
        await apply(consumer, {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: `${name}-web`, namespace },
          spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 8080 }] },
        });
        await kubectl(consumer, '-n', namespace, 'wait', `pod/${name}`, '--for=condition=Ready', '--timeout=120s');
      }
      const node = ['get', 'pod', 'far', '-n', 'shop', '-o', 'jsonpath={.spec.nodeName}'];
      expect(await kubectl(consumer, ...node)).toBe(provider);
      expect(await kubectl(provider, 'get', 'pods', '-n', `shop-${consumer}`, '-o', 'name')).toContain('pod/far');
      const ask = (namespace: string, from: string, url: string) =>
        eventually(
          `${from} to get ${url}`,
          async () => (await kubectl(consumer, '-n', namespace, 'exec', from, '--', 'get', url)) !== '',
          patience,
        );
      await ask('home', 'near', 'http://far-web.shop:80/');
      // By its short name: the namespace has another one there.
      await ask('shop', 'far', 'http://far-web:80/');
      expect(await kubectl(consumer, '-n', 'shop', 'logs', 'far')).toMatch(/^listening on .*:8080$/m);
      await kubectl(consumer, 'delete', 'namespace', 'home', 'shop', '--timeout=120s');
      await world.mustIsthmus('unpeer', consumer, provider, '--wait');
      await eventually(
        'the virtual node to be gone',
        async () => !(await kubectl(consumer, 'get', 'nodes', '-o', 'name')).includes(`node/${provider}\n`),
        patience,
      );
      await eventually(
        'the pods of the guest to be gone',
        async () => !(await kubectl(provider, 'get', 'namespaces', '-o', 'name')).includes(`shop-${consumer}`),
        patience,
      );
    },
  );
});
