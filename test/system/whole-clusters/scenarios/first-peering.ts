/** A user's first quarter of an hour: join, peer, look, offload. */
import { describe, expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import { namespaces, nodes } from '#shared/domain/core-kinds.ts';
import { virtualNodeTaint } from '#shared/domain/liqo-keys.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { eventually } from '#test/harness/eventually.ts';
import { consumer, isRunning, patience, provider, reported, type Stage } from '../stage.ts';
import { container, deployment, pod } from '../workloads.ts';

/** As docs/guests.md tells the administrator of a provider. */
const accept = (api: KubeApi, names: readonly string[]): Promise<unknown> =>
  api.mergePatch(peeringPolicies, { name: 'default' }, { spec: { asProvider: { guests: { namespaces: names } } } });

export function firstPeering(on: () => Stage): void {
  describe('a first peering', () => {
    test('shows both clusters online after they have joined', async () => {
      const shown = await on().world.mustIsthmus('get', 'clusters');
      expect(shown).toMatch(/rome +connected/);
      expect(shown).toMatch(/milan +connected/);
    });

    test('makes the provider a Ready node with its capacity, architecture, version and taint', async () => {
      const output = await on().mustPeer();
      expect(output).toContain('peering rome -> milan is Ready: node milan in rome');
      const node = await eventually(
        'the taints of a new node are gone',
        async () => {
          const found = await on().api(consumer).get(nodes, { name: provider });
          return found?.spec?.taints?.some(({ key }) => key.startsWith('node.kubernetes.io/')) ? undefined : found;
        },
        patience,
      );
      const [genuine] = await on().api(provider).list(nodes);
      expect(node?.status?.capacity).toMatchObject({ cpu: '2', memory: '2Gi', pods: '20' });
      expect(node?.status?.allocatable).toEqual(node?.status?.capacity);
      expect(node?.metadata.labels).toMatchObject({
        'kubernetes.io/arch': genuine?.status?.nodeInfo?.architecture,
        'kubernetes.io/os': 'linux',
        'liqo.io/type': 'virtual-node',
        'liqo.io/remote-cluster-id': 'milan',
      });
      expect(node?.status?.nodeInfo).toMatchObject({
        architecture: genuine?.status?.nodeInfo?.architecture,
        kubeletVersion: genuine?.status?.nodeInfo?.kubeletVersion,
      });
      expect(node.spec?.taints).toEqual([expect.objectContaining(virtualNodeTaint)]);
      expect(node?.status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
    });

    test('is listed and described from both ends, with what to do next', async () => {
      expect(await on().world.mustIsthmus('get', 'peerings')).toMatch(/rome.*milan.*Ready/);
      const described = await on().world.mustIsthmus('describe', 'peering', consumer, provider);
      expect(described).toContain('Conditions of consumer rome:');
      expect(described).toContain('Conditions of provider milan:');
      expect(described).toContain('Waiting for: nothing');
      expect(described).toMatch(/Next step: +offload a namespace/);
    });

    test('asked for again changes nothing', async () => {
      const before = await on().peering();
      await on().mustPeer();
      expect(await on().peering()).toMatchObject({ id: before?.id, phaseSince: before?.phaseSince });
    });
  });

  describe('offloading a namespace', () => {
    test('under a name without the ID of the consumer takes a word in the policy of the provider', async () => {
      await on().createNamespace('unasked');
      const refused = await on().offload('unasked', '--strategy', 'Remote', '--mapping', 'EnforceSameName');
      expect(refused.code, reported(refused)).not.toBe(0);
      expect(refused.stderr).toMatch(
        /milan cannot give us namespace unasked:.* guests\.namespaces of its PeeringPolicy/,
      );
      const described = await on().kubectl(provider, ['describe', 'namespacemaps', '--all-namespaces']);
      expect(described.stdout).toMatch(/"unasked" is not accepted: accepted are names that end with -rome/);
      await accept(on().api(provider), ['unasked', 'abroad', 'a-chosen-name']);
      await eventually(
        'milan to make the namespace once its policy names it',
        () => on().api(provider).get(namespaces, { name: 'unasked' }),
        patience,
      );
      await on().deleteNamespaces(consumer, 'unasked');
    });

    test.each([
      { namespace: 'at-home', strategy: 'Local', mapping: ['--mapping', 'DefaultName'], remote: 'at-home-rome' },
      { namespace: 'abroad', strategy: 'Remote', mapping: ['--mapping', 'EnforceSameName'], remote: 'abroad' },
      {
        namespace: 'anywhere',
        strategy: 'LocalAndRemote',
        mapping: ['--remote-namespace-name', 'a-chosen-name'],
        remote: 'a-chosen-name',
      },
    ])('with strategy $strategy and $mapping names it $remote at the provider', async (row) => {
      await on().createNamespace(row.namespace);
      await on().mustOffload(row.namespace, '--strategy', row.strategy, ...row.mapping);
      const remote = await on().api(provider).get(namespaces, { name: row.remote });
      expect(remote?.metadata.labels).toMatchObject({ 'liqo.io/remote-cluster-id': 'rome' });
    });

    test.each([
      { what: 'a system namespace', namespace: 'kube-system', says: /kube-system is a system namespace/, code: 2 },
      { what: 'a namespace of Isthmus', namespace: 'liqo', says: /liqo is a system namespace/, code: 2 },
      { what: 'an unknown namespace', namespace: 'atlantis', says: /there is no namespace atlantis/, code: 4 },
      { what: 'an offloaded namespace', namespace: 'abroad', says: /abroad is offloaded already/, code: 5 },
    ])('is refused for $what, and nothing changes', async ({ namespace, says, code }) => {
      const all = async () =>
        (await on().api(consumer).list(namespaceOffloadings)).map(({ metadata, spec }) => ({
          at: metadata.namespace,
          generation: metadata.generation,
          spec,
        }));
      const before = await all();
      const ended = await on().offload(namespace);
      expect(ended.stderr).toMatch(says);
      expect(ended.code, reported(ended)).toBe(code);
      expect(await all()).toEqual(before);
    });

    test('puts pods where the strategy says', async () => {
      const main = [container(['pause'])];
      const onNode = (name: string) => ({ nodeSelector: { 'kubernetes.io/hostname': name } });
      const [local] = (await on().api(consumer).list(nodes, { labelSelector: 'liqo.io/type!=virtual-node' })).map(
        ({ metadata }) => metadata.name,
      );
      await on().apply(
        consumer,
        pod('at-home', 'any', main),
        pod('abroad', 'any', main),
        pod('anywhere', 'here', main, onNode(local!)),
        pod('anywhere', 'there', main, onNode(provider)),
        deployment('abroad', 'hello', 2, main),
      );
      const whereIs = async (namespace: string, name: string) =>
        (await on().podThat(consumer, [namespace, name], 'runs', isRunning)) as { spec?: { nodeName?: string } };
      expect((await whereIs('at-home', 'any')).spec?.nodeName).toBe(local);
      expect((await whereIs('abroad', 'any')).spec?.nodeName).toBe(provider);
      expect((await whereIs('anywhere', 'here')).spec?.nodeName).toBe(local);
      expect((await whereIs('anywhere', 'there')).spec?.nodeName).toBe(provider);
      await expect(on().pod(provider, 'a-chosen-name', 'there')).resolves.toMatchObject({
        status: { phase: 'Running' },
      });
      await expect(on().pod(provider, 'at-home-rome', 'any')).resolves.toBeUndefined();
    });

    test('refuses a pod that insists on the other side of the strategy, and says so on the pod', async () => {
      await on().apply(
        consumer,
        pod('at-home', 'homesick', [container(['pause'])], { nodeSelector: { 'kubernetes.io/hostname': provider } }),
      );
      await on().podThat(consumer, ['at-home', 'homesick'], 'is told why it waits', ({ status }) =>
        /taint|affinity|selector/.test(status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? ''),
      );
    });

    test('lets a Deployment run at the provider', async () => {
      await eventually(
        'two pods of the Deployment run, and their twins at the provider are the same',
        async () => {
          const select = [
            'get',
            'pods',
            '-l',
            'app=hello',
            '-o',
            'jsonpath={range .items[*]}{.metadata.name} {.status.phase}{"\\n"}{end}',
          ];
          const here = (await on().kubectl(consumer, ['-n', 'abroad', ...select])).stdout;
          const there = (await on().kubectl(provider, ['-n', 'abroad', ...select])).stdout;
          return here.match(/hello-\S+ Running/g)?.length === 2 && here === there;
        },
        patience,
      );
      await eventually(
        'the Deployment counts them as available',
        async () =>
          (
            await on().kubectl(consumer, [
              '-n',
              'abroad',
              'get',
              'deployment',
              'hello',
              '-o',
              'jsonpath={.status.availableReplicas}',
            ])
          ).stdout === '2',
        patience,
      );
    });
  });
}
