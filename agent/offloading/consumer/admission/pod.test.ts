/** The pod patch applied to pods: the admitted affinity means exactly what pod and namespace asked for together. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PatchOperation } from '#agent/admission/review.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { matchesTerms, type NodeFacts, type NodeSelectorTerm } from '#shared/domain/node-selector.ts';
import { imposedTerms, podPatch } from './pod.ts';

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

describe('a pod with a claim', () => {
  const selector = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }] };
  const withVolume = (volume: object): Pod =>
    ({ spec: { containers: [], volumes: [{ name: 'data', ...volume }] } }) as unknown as Pod;
  test.each([
    { strategy: 'LocalAndRemote' as const, volume: { persistentVolumeClaim: { claimName: 'data' } }, stays: true },
    { strategy: 'LocalAndRemote' as const, volume: { ephemeral: { volumeClaimTemplate: {} } }, stays: true },
    { strategy: 'LocalAndRemote' as const, volume: { emptyDir: {} }, stays: false },
    { strategy: 'Remote' as const, volume: { persistentVolumeClaim: { claimName: 'data' } }, stays: false },
  ])('stays in this cluster where it may: with $strategy and $volume: $stays', ({ strategy, volume, stays }) => {
    const patch = podPatch(withVolume(volume), { podOffloadingStrategy: strategy, clusterSelector: selector });
    expect(patch.length === 0).toBe(stays);
  });
});
