/** Which pods have to leave when a policy tightens, and what waits for them. */
import { expect, test } from 'vitest';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import { type Decision, decide, type Observed } from './decide.ts';
import { held, isTightening, planDrain } from './drain.ts';

const pod = (
  name: string,
  nodeName: string | undefined,
  more: { metadata?: object; spec?: object; phase?: string } = {},
) =>
  ({
    metadata: { namespace: 'demo', name, ...more.metadata },
    spec: { nodeName, ...more.spec },
    status: { phase: more.phase ?? 'Running' },
  }) as unknown as Pod;
const owned = (kind: string) => ({ metadata: { ownerReferences: [{ kind, controller: true }] } });
const allPods = [
  pod('away', 'vn1'),
  pod('home', 'worker'),
  pod('unbound', undefined),
  pod('done', 'vn1', { phase: 'Succeeded' }),
  pod('daemon', 'vn1', owned('DaemonSet')),
  pod('static', 'worker', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } }),
  pod('leaving', 'vn1', { metadata: { deletionTimestamp: 'now' } }),
  pod('classy', 'vn1', { spec: { runtimeClassName: 'liqo' } }),
];

const observed = (spec: object, more: { metadata?: object; dead?: boolean } = {}): Observed => ({
  offloading: {
    metadata: { namespace: 'demo', name: 'offloading', generation: 2, ...more.metadata },
    spec: { namespaceMappingStrategy: 'DefaultName', podOffloadingStrategy: 'LocalAndRemote', ...spec },
    status: { observedGeneration: 1 },
  } as NamespaceOffloading,
  remoteName: 'demo-cons',
  namespace: { exists: true, terminating: false, labelled: true },
  providers: [
    {
      id: 'prov',
      dead: more.dead ?? false,
      nodes: [{ name: 'vn1', labels: { zone: 'a' } }],
      map: {
        ref: { namespace: 'liqo-tenant-prov', name: 'prov' },
        deleting: false,
        desired: 'demo-cons',
        current: { remoteNamespace: 'demo-cons', phase: 'Accepted' },
      },
    },
  ],
  hasFinalizer: true,
  now: '2026-01-01T00:00:00Z',
});
const elsewhere = {
  clusterSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['b'] }] }] },
};
const gone = { deletionTimestamp: '2026-01-01T00:00:00Z' };

test.each<{ when: string; given: Observed; evicts: string[]; occupied: string[]; left: number }>([
  { when: 'everything is allowed everywhere', given: observed({}), evicts: [], occupied: [], left: 0 },
  {
    when: 'pods must be here',
    given: observed({ podOffloadingStrategy: 'Local' }),
    evicts: ['away'],
    occupied: ['prov'],
    left: 2,
  },
  {
    when: 'pods must be away',
    given: observed({ podOffloadingStrategy: 'Remote' }),
    evicts: ['home'],
    occupied: [],
    left: 1,
  },
  {
    when: 'the cluster is not selected any more',
    given: observed(elsewhere),
    evicts: ['away', 'classy'],
    occupied: ['prov'],
    left: 3,
  },
  {
    when: 'the offloading ends',
    given: observed({}, { metadata: gone }),
    evicts: ['away', 'classy'],
    occupied: ['prov'],
    left: 3,
  },
  { when: 'the provider is dead', given: observed(elsewhere, { dead: true }), evicts: [], occupied: [], left: 0 },
])('when $when, $evicts are evicted', ({ given, evicts, occupied, left }) => {
  const plan = planDrain(given, allPods);
  expect([plan.evict.map(({ metadata }) => metadata.name), [...plan.occupied], plan.left]).toEqual([
    evicts,
    occupied,
    left,
  ]);
});

test('a mapping that pods still need stays, and the change counts as observed when they have gone', () => {
  const given = observed(elsewhere);
  const decision: Decision = decide(given);
  expect(isTightening(given, decision)).toBe(true);
  expect(decision.mappings).toHaveLength(1);
  const before = held(decision, given, planDrain(given, allPods));
  expect([before.mappings, before.status.observedGeneration]).toEqual([[], 1]);
  const after = held(decision, given, planDrain(given, []));
  expect([after.mappings, after.status.observedGeneration]).toEqual([decision.mappings, 2]);
});
