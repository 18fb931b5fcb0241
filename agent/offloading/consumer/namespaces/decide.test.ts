/** Selection, phases and the order of deletion, as tables. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { NamespaceOffloading, RemoteNamespaceCondition } from '#shared/schema/liqo/namespace-offloading.ts';
import { decide, type Observed, type ProviderFacts, phaseOf } from './decide.ts';
import { holderOf, namingProblem, remoteNameOf } from './remote-name.ts';

const node = (name: string, labels: Record<string, string> = {}) => ({ name, labels });
const ref = (id: string) => ({ namespace: `liqo-tenant-${id}`, name: id });
const zone = (value: string) => ({
  nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [value] }] }],
});
const offloading = (more: { spec?: object; metadata?: object; status?: object } = {}): NamespaceOffloading =>
  ({
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'NamespaceOffloading',
    metadata: { namespace: 'demo', name: 'offloading', generation: 3, ...more.metadata },
    spec: { namespaceMappingStrategy: 'DefaultName', podOffloadingStrategy: 'LocalAndRemote', ...more.spec },
    ...(more.status && { status: more.status }),
  }) as NamespaceOffloading;
const observed = (providers: ProviderFacts[], more: Partial<Observed> = {}): Observed => ({
  offloading: offloading(),
  remoteName: 'demo-cons',
  namespace: { exists: true, terminating: false, labelled: true },
  providers,
  hasFinalizer: true,
  now: '2026-01-01T00:00:00Z',
  ...more,
});
const provider = (id: string, map: object = {}, nodes = [node(`vn-${id}`)]): ProviderFacts => ({
  id,
  dead: false,
  nodes,
  map: { ref: ref(id), deleting: false, ...map },
});
const accepted = { desired: 'demo-cons', current: { remoteNamespace: 'demo-cons', phase: 'Accepted' as const } };

describe('offloading a namespace', () => {
  test('one matching virtual node of several selects the provider, in any order', () => {
    const nodes = [node('v1', { zone: 'a' }), node('v2', { zone: 'b' })];
    for (const order of [nodes, nodes.toReversed()]) {
      const decision = decide(
        observed([provider('p', {}, order)], { offloading: offloading({ spec: { clusterSelector: zone('b') } }) }),
      );
      expect(decision.mappings).toEqual([{ map: ref('p'), remote: 'demo-cons' }]);
    }
  });

  test('a selector that cannot be evaluated neither adds nor removes anything', () => {
    const broken = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'Near' }] }] };
    const decision = decide(
      observed([provider('p', accepted), provider('q')], {
        offloading: offloading({ spec: { clusterSelector: broken } }),
      }),
    );
    expect(decision.mappings).toEqual([]);
    expect(decision.problem).toMatchObject({ reason: 'InvalidClusterSelector' });
    expect(decision.status.offloadingPhase).toBe('Ready');
  });

  test('a provider without a map is waited for, and said to be', () => {
    const decision = decide(observed([{ id: 'p', dead: false, nodes: [node('v')] }]));
    expect(decision.waitingOn).toMatch(/NamespaceMap of p/);
    expect(decision.status).toMatchObject({ offloadingPhase: 'InProgress', observedGeneration: 3 });
  });

  test('the label follows the strategy', () => {
    const local = offloading({ spec: { podOffloadingStrategy: 'Local' } });
    expect(decide(observed([], { offloading: local })).label).toBe(false);
    expect(decide(observed([])).label).toBeUndefined();
    expect(decide(observed([], { namespace: { exists: true, terminating: false, labelled: false } })).label).toBe(true);
  });

  test('a namespace on its way out gets nothing new', () => {
    const decision = decide(
      observed([provider('p')], {
        namespace: { exists: true, terminating: true, labelled: false },
        hasFinalizer: false,
      }),
    );
    expect([decision.mappings, decision.label, decision.finalizer]).toEqual([[], undefined, 'keep']);
  });

  test('transition times move only when status or reason do', () => {
    const first = decide(observed([provider('p', accepted)])).status;
    const later = observed([provider('p', accepted)], {
      offloading: offloading({ status: first }),
      now: '2027-01-01T00:00:00Z',
    });
    expect(decide(later).status).toEqual(first);
    const gone = decide({
      ...later,
      providers: [provider('p', { desired: 'demo-cons', current: { phase: 'Terminating' } })],
    });
    const times = gone.status.remoteNamespacesConditions?.p?.map((c) => c.lastTransitionTime);
    expect(times).toEqual(['2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z']);
  });

  test('deciding twice on what the first decision made decides nothing', () => {
    const zones = fc.constantFrom('a', 'b');
    const facts = fc.record({ zones: fc.array(zones, { maxLength: 3 }), mapped: fc.boolean() });
    fc.assert(
      fc.property(fc.array(facts, { maxLength: 4 }), zones, (given, wanted) => {
        const providers = given.map(({ zones: z, mapped }, i) =>
          provider(
            `p${i}`,
            mapped ? accepted : {},
            z.map((value, n) => node(`v${i}-${n}`, { zone: value })),
          ),
        );
        const before = observed(providers, { offloading: offloading({ spec: { clusterSelector: zone(wanted) } }) });
        const { mappings, status } = decide(before);
        const after = providers.map((p): ProviderFacts => {
          const mine = mappings.find(({ map }) => map.name === p.id);
          if (!mine || !p.map) return p;
          const { desired, ...rest } = p.map;
          return { ...p, map: { ...rest, ...(mine.remote !== null && { desired: mine.remote }) } };
        });
        const again = decide({ ...before, providers: after, offloading: { ...before.offloading, status } });
        expect(again.mappings).toEqual([]);
      }),
    );
  });
});

describe('phases', () => {
  const condition = (
    type: 'OffloadingRequired' | 'Ready',
    status: 'True' | 'False',
    reason = 'x',
  ): RemoteNamespaceCondition => ({ type, status, reason });
  const required = condition('OffloadingRequired', 'True');
  const ready = [required, condition('Ready', 'True')];
  const failed = [required, condition('Ready', 'False', 'CreationLoopBackOff')];
  const creating = [required, condition('Ready', 'False', 'Creating')];
  const leaving = [condition('OffloadingRequired', 'False'), condition('Ready', 'True')];
  test.each([
    [{}, 'NoClusterSelected'],
    [{ p: leaving }, 'NoClusterSelected'],
    [{ p: ready, q: leaving }, 'Ready'],
    [{ p: ready, q: failed }, 'SomeFailed'],
    [{ p: failed }, 'AllFailed'],
    [{ p: creating, q: ready }, 'InProgress'],
    [{ p: creating, q: failed }, 'SomeFailed'],
  ] as const)('%j is %s', (conditions, phase) => expect(phaseOf(conditions)).toBe(phase));
});

describe('taking an offloading back', () => {
  const deleted = offloading({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
  const deleting = (providers: ProviderFacts[], more: Partial<Observed> = {}) =>
    decide(observed(providers, { offloading: deleted, ...more }));

  test('label and mappings go first, the finalizer stays until the providers are done', () => {
    const first = deleting([provider('p', accepted)]);
    expect(first).toMatchObject({
      label: false,
      mappings: [{ remote: null }],
      finalizer: 'keep',
      status: { offloadingPhase: 'Terminating' },
    });
    const { desired: _, ...removing } = accepted;
    expect(deleting([provider('p', removing)])).toMatchObject({
      finalizer: 'keep',
      waitingOn: expect.stringMatching(/^p to remove/),
    });
    expect(deleting([provider('p')])).toMatchObject({
      finalizer: 'remove',
      status: { remoteNamespacesConditions: {} },
    });
  });

  test('a dead provider and a vanished map are not waited for', () => {
    expect(deleting([{ ...provider('p', accepted), dead: true }]).finalizer).toBe('remove');
    expect(deleting([{ id: 'p', dead: false, nodes: [] }]).finalizer).toBe('remove');
  });

  test('a map that is being deleted itself is left to its own end', () => {
    const decision = deleting([provider('p', { ...accepted, deleting: true })]);
    expect([decision.mappings, decision.finalizer]).toEqual([[], 'keep']);
  });
});

describe('remote names', () => {
  test.each([
    [{ namespaceMappingStrategy: 'EnforceSameName' as const }, 'demo'],
    [{ namespaceMappingStrategy: 'DefaultName' as const }, 'demo-cons'],
    [{ namespaceMappingStrategy: 'SelectedName' as const, remoteNamespaceName: 'x' }, 'x'],
    [{}, 'demo-cons'],
  ])('%j gives %s', (spec, name) => expect(remoteNameOf('demo', spec, 'cons')).toBe(name));

  test('too long a default name names the way out', () => {
    expect(namingProblem('n'.repeat(60), {}, 'cons')).toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/65 characters.*SelectedName/),
    });
  });

  test('of several offloadings that ask for one name, the mapped one has it, else the oldest', () => {
    const ask = (namespace: string, creationTimestamp: string) =>
      offloading({
        metadata: { namespace, creationTimestamp },
        spec: { namespaceMappingStrategy: 'SelectedName', remoteNamespaceName: 'x' },
      });
    const both = [ask('young', '2026-02-01T00:00:00Z'), ask('old', '2026-01-01T00:00:00Z')];
    expect(holderOf('x', both, 'cons', () => false)).toBe('old');
    expect(holderOf('x', both, 'cons', (ns) => ns === 'young')).toBe('young');
  });
});
