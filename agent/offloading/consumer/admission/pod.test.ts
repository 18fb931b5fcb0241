/** The pod patch applied to pods: the admitted affinity means exactly what pod and namespace asked for together. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PatchOperation } from '#agent/admission/review.ts';
import type { PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { matchesTerms, type NodeFacts, type NodeSelectorTerm } from '#shared/domain/node-selector.ts';
import { type Claims, here, imposedTerms, podPatch, windowsProblem } from './pod.ts';
import { claimsOfPod, judge } from './pod-claims.ts';

type Tree = Record<string, unknown>;

/** The `add` of RFC 6902, which is all that the rules use. */
function patched(pod: Pod, operations: readonly PatchOperation[]): Pod {
  const copy = structuredClone(pod) as unknown as Tree;
  for (const { op, path, value } of operations) {
    expect(op).toBe('add');
    const keys = path.slice(1).split('/');
    const last = keys.pop() ?? '';
    const parent = keys.reduce((node, key) => node[key] as Tree, copy);
    if (Array.isArray(parent)) parent.push(value);
    else {
      expect(parent).toBeTypeOf('object');
      parent[last] = value;
    }
  }
  return copy as unknown as Pod;
}

const key = fc.constantFrom('zone', 'liqo.io/type');
const requirement = fc.oneof(
  fc.record({
    key,
    operator: fc.constantFrom('In', 'NotIn'),
    values: fc.constantFrom('a', 'virtual-node').map((v) => [v]),
  }),
  fc.record({ key, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
);
const pin = fc.constantFrom('n1', 'n2').map((name) => ({ key: 'metadata.name', operator: 'In', values: [name] }));
const term: fc.Arbitrary<NodeSelectorTerm> = fc.record(
  { matchExpressions: fc.array(requirement, { maxLength: 2 }), matchFields: fc.array(pin, { maxLength: 1 }) },
  { requiredKeys: [] },
);
const terms = fc.array(term, { maxLength: 3 });
const ownTerms = fc.option(fc.array(term, { minLength: 1, maxLength: 3 }), { nil: undefined });
const node: fc.Arbitrary<NodeFacts> = fc.record({
  name: fc.constantFrom('n1', 'n2'),
  labels: fc.dictionary(key, fc.constantFrom('a', 'b', 'virtual-node'), { maxKeys: 2 }),
});
const policy = fc.record({
  podOffloadingStrategy: fc.constantFrom('Local' as const, 'Remote' as const, 'LocalAndRemote' as const),
  clusterSelector: terms.map((nodeSelectorTerms) => ({ nodeSelectorTerms })),
});
const toleration = fc.record(
  {
    key: fc.constantFrom('virtual-node.liqo.io/not-allowed', 'gpu', ''),
    operator: fc.constantFrom('Exists', 'Equal'),
    value: fc.constantFrom('true', 'x'),
    effect: fc.constantFrom('NoExecute', 'NoSchedule', ''),
    tolerationSeconds: fc.constantFrom(5),
  },
  { requiredKeys: [] },
);
const pod = fc
  .record({
    own: ownTerms,
    shape: fc.constantFrom('bare', 'affinity', 'nodeAffinity'),
    tolerations: fc.option(fc.array(toleration, { maxLength: 3 }), { nil: undefined }),
  })
  .map(({ own, shape, tolerations }): Pod => {
    const required = own && { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: own } };
    const affinity = required
      ? { nodeAffinity: required }
      : { affinity: { podAffinity: {} }, nodeAffinity: { nodeAffinity: {} }, bare: undefined }[shape];
    const spec = { containers: [], ...(affinity && { affinity }), ...(tolerations && { tolerations }) };
    return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec } as unknown as Pod;
  });
const required = ({ spec }: Pod) =>
  spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
const admits = (selector: readonly NodeSelectorTerm[] | undefined, n: NodeFacts) =>
  selector === undefined || matchesTerms(n, selector);

describe('the pod patch', () => {
  test('a node satisfies the admitted pod if and only if it satisfied both the pod and the namespace', () => {
    fc.assert(
      fc.property(pod, policy, node, (before, rule, n) => {
        const after = patched(before, podPatch(before, rule));
        const imposed = imposedTerms(rule);
        expect(admits(required(after), n)).toBe(
          admits(required(before), n) && admits(imposed.length === 0 ? undefined : imposed, n),
        );
      }),
      { numRuns: 5_000 },
    );
  });

  test('an offloaded pod tolerates virtual nodes for ever, by one toleration more at most', () => {
    fc.assert(
      fc.property(pod, policy, (before, rule) => {
        const after = patched(before, podPatch(before, rule));
        const added = (after.spec?.tolerations?.length ?? 0) - (before.spec?.tolerations?.length ?? 0);
        const forever = (after.spec?.tolerations ?? []).some(
          (t) =>
            t.tolerationSeconds === undefined &&
            (!t.effect || t.effect === 'NoExecute') &&
            (t.operator === 'Exists'
              ? !t.key || t.key.startsWith('virtual-node')
              : t.key?.startsWith('virtual-node') && t.value === 'true'),
        );
        if (rule.podOffloadingStrategy === 'Local') expect(after).toEqual(before);
        else expect([forever, added <= 1]).toEqual([true, true]);
      }),
    );
  });

  test('a second admission adds no toleration', () => {
    fc.assert(
      fc.property(pod, policy, (before, rule) => {
        const once = patched(before, podPatch(before, rule));
        const twice = patched(once, podPatch(once, rule));
        expect(twice.spec?.tolerations).toEqual(once.spec?.tolerations);
      }),
    );
  });
});

describe('a pod with claims', () => {
  const selector = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }] };
  const empty = { spec: { containers: [] } } as unknown as Pod;
  const tolerates = (pod: Pod) => pod.spec?.tolerations !== undefined;
  const real = { name: 'n1', labels: {} };
  const virtual = (labels: Record<string, string> = {}) => ({
    name: 'vn1',
    labels: { 'liqo.io/type': 'virtual-node', zone: 'a', ...labels },
  });
  const admitted = (strategy: 'LocalAndRemote' | 'Remote', claims: Claims) =>
    patched(empty, podPatch(empty, { podOffloadingStrategy: strategy, clusterSelector: selector }, claims));

  test('of classes of this cluster stays on real nodes where it may', () => {
    const pod = admitted('LocalAndRemote', { movable: false, open: true, moving: false });
    expect([tolerates(pod), admits(required(pod), real), admits(required(pod), virtual())]).toEqual([
      false,
      true,
      false,
    ]);
    expect(tolerates(admitted('Remote', { movable: false, open: true, moving: false }))).toBe(true);
  });

  test('that have no volume yet goes to no virtual node whose provider offers no storage', () => {
    for (const strategy of ['LocalAndRemote', 'Remote'] as const) {
      const open = required(admitted(strategy, { movable: true, open: true, moving: false }));
      expect(admits(open, virtual({ 'storage.liqo.io/available': 'false' }))).toBe(false);
      expect(admits(open, virtual({ 'storage.liqo.io/available': 'true' }))).toBe(true);
      expect(admits(open, real)).toBe(strategy === 'LocalAndRemote');
      const bound = required(admitted(strategy, { movable: true, open: false, moving: false }));
      expect(admits(bound, virtual({ 'storage.liqo.io/available': 'false' }))).toBe(true);
    }
  });

  test('that is to begin as a copy goes where its source is', () => {
    const milan = virtual({ 'liqo.io/remote-cluster-id': 'milan' });
    const genoa = virtual({ 'liqo.io/remote-cluster-id': 'genoa' });
    const where = (strategy: 'LocalAndRemote' | 'Remote', sources: NonNullable<Claims['sources']>) => {
      const terms = required(admitted(strategy, { movable: true, open: true, moving: false, sources }));
      return [admits(terms, real), admits(terms, milan), admits(terms, genoa)];
    };
    expect(where('LocalAndRemote', [])).toEqual([true, true, true]);
    expect(where('LocalAndRemote', ['milan'])).toEqual([false, true, false]);
    expect(where('LocalAndRemote', [here])).toEqual([true, false, false]);
    expect(where('LocalAndRemote', ['milan', 'genoa'])).toEqual([false, false, false]);
    expect(where('Remote', ['genoa'])).toEqual([false, false, true]);
    // Its claim says why it gets no volume; a pod that no node may have says nothing of it.
    expect(where('Remote', [here])).toEqual([false, true, true]);
  });

  test('has the places of their sources read from the API server, for claims without a volume', async () => {
    const ours = { 'pv.kubernetes.io/provisioned-by': 'liqo.io/storage' };
    const far = { driver: 'storage.isthmus.dev', volumeHandle: 'milan/shop-rome/far' };
    const copyOf = (name: string) => ({
      storageClassName: 'liqo',
      dataSource: { kind: 'PersistentVolumeClaim', name },
    });
    const objects: Record<string, object> = {
      copy: { metadata: { name: 'copy' }, spec: copyOf('far') },
      done: { metadata: { name: 'done' }, spec: { ...copyOf('far'), volumeName: 'v' } },
      soon: { metadata: { name: 'soon' }, spec: copyOf('unbound') },
      lost: { metadata: { name: 'lost' }, spec: copyOf('nothing') },
      far: { metadata: { name: 'far' }, spec: { volumeName: 'pv-far' } },
      near: { metadata: { name: 'near' }, spec: { volumeName: 'pv-near' } },
      unbound: { metadata: { name: 'unbound' }, spec: {} },
      'pv-far': { metadata: { name: 'pv-far', annotations: ours }, spec: { csi: far } },
      'pv-near': {
        metadata: { name: 'pv-near', annotations: ours },
        spec: { csi: { driver: 'd', volumeHandle: 'h' } },
      },
    };
    const api = {
      get: async (_: unknown, { name }: { name: string }) => objects[name],
      list: async () => [virtualClass],
    };
    const of = async (...volumes: object[]) => {
      const pod = { spec: { containers: [], volumes } } as unknown as Pod;
      return (await claimsOfPod(pod, 'shop', api as never, new AbortController().signal)).sources;
    };
    const uses = (claimName: string) => ({ name: claimName, persistentVolumeClaim: { claimName } });
    expect(await of(uses('copy'))).toEqual(['milan']);
    expect(await of(uses('done'), uses('soon'), uses('lost'))).toEqual([]);
    const template = { name: 'e', ephemeral: { volumeClaimTemplate: { spec: copyOf('near') } } };
    expect(await of(template, uses('copy'))).toEqual([here, 'milan']);
  });

  const virtualClass = { metadata: { name: 'liqo' }, provisioner: 'liqo.io/storage' } as StorageClass;
  const other = { metadata: { name: 'aware' }, provisioner: 'storage.isthmus.dev' } as StorageClass;
  const disk = { metadata: { name: 'disk' }, provisioner: 'disk.example.com' } as StorageClass;
  const used = (storageClassName: string | undefined, more: object = {}, annotations: Record<string, string> = {}) =>
    ({
      metadata: { name: 'data', annotations },
      spec: { storageClassName, ...more },
    }) as unknown as PersistentVolumeClaim;
  test.each([
    { of: [used('liqo')], are: { movable: true, open: true, moving: false } },
    { of: [used('liqo', { volumeName: 'v' })], are: { movable: true, open: false, moving: false } },
    { of: [used('liqo'), used('aware')], are: { movable: true, open: true, moving: false } },
    { of: [used('disk')], are: { movable: false, open: true, moving: false } },
    { of: [used('liqo'), used('disk', { volumeName: 'v' })], are: { movable: false, open: true, moving: false } },
    { of: [used(undefined)], are: { movable: false, open: true, moving: false } },
    { of: ['missing' as const], are: { movable: false, open: false, moving: false } },
    {
      of: [used('disk', {}, { 'isthmus.dev/external-claim': 'true' })],
      are: { movable: true, open: false, moving: false },
    },
  ])('are judged by class, volume and annotation: $are', ({ of, are }) => {
    expect(judge(of, [virtualClass, other, disk])).toEqual(are);
  });
});

describe('a pod for Windows', () => {
  const containers = [{ name: 'app', image: 'app' }];
  const pods = [{ os: { name: 'windows' } }, { nodeSelector: { 'kubernetes.io/os': 'windows' } }].map(
    (spec): Pod => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'w' }, spec: { containers, ...spec } }),
  );

  test.each(pods)('stays on real nodes where it may, with a warning: $spec', (pod) => {
    const policy = { podOffloadingStrategy: 'LocalAndRemote' } as const;
    const terms = patched(pod, podPatch(pod, policy)).spec?.affinity?.nodeAffinity
      ?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
    expect(terms).toEqual([
      { matchExpressions: [{ key: 'liqo.io/type', operator: 'NotIn', values: ['virtual-node'] }] },
    ]);
    expect(windowsProblem(pod, policy).warning).toMatch(/is for Windows .* stays on nodes of this cluster/);
  });

  test.each(pods)('is refused where it would have to run at a provider: $spec', (pod) => {
    const { refusal } = windowsProblem(pod, { podOffloadingStrategy: 'Remote' });
    expect(refusal).toMatch(/accepted here with the strategies LocalAndRemote and Local/);
  });

  test.each(['LocalAndRemote', 'Remote', 'Local'] as const)(
    'is refused with the RuntimeClass of virtual nodes, strategy %s',
    (podOffloadingStrategy) => {
      for (const pod of pods) {
        const withClass = { ...pod, spec: { ...pod.spec, runtimeClassName: 'liqo' } } as Pod;
        const said = windowsProblem(withClass, { podOffloadingStrategy });
        expect(said).toEqual({ refusal: expect.stringMatching(/leave out spec.runtimeClassName liqo/) });
      }
    },
  );

  test('of a Local namespace is as it was, and other pods have no such problem', () => {
    const [pod] = pods as [Pod];
    expect(windowsProblem(pod, { podOffloadingStrategy: 'Local' })).toEqual({});
    const linux = { ...pod, spec: { containers, os: { name: 'linux' } } } as Pod;
    expect(windowsProblem(linux, { podOffloadingStrategy: 'Remote' })).toEqual({});
  });
});
