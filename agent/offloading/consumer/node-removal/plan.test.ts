import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { type RetireObserved, retire } from './plan.ts';

const limits = { budgetsMs: 100_000, forceMs: 150_000 };
const node = (unschedulable = true): Node =>
  ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'vn1', uid: 'n' }, spec: { unschedulable } }) as Node;
const pod = (name: string, { terminating = false, daemon = false } = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'demo',
      uid: name,
      ...(terminating ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
      ...(daemon
        ? { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }] }
        : {}),
    },
  }) as Pod;
const nothingLeft = { shadows: 0, pods: 0 };
const start: RetireObserved = {
  node: node(),
  pods: [],
  left: nothingLeft,
  final: true,
  abandoned: false,
  ageMs: 0,
  blocked: new Map(),
};
const steps = (observed: Partial<RetireObserved>) => {
  const plan = retire({ ...start, ...observed }, limits);
  const done = plan.actions.map((action) =>
    action.do === 'delete'
      ? `delete ${action.pod.metadata.name}${action.graceless ? ' now' : ''}`
      : action.do === 'evict'
        ? `evict ${action.pod.metadata.name}`
        : action.do,
  );
  return { ...plan, actions: done };
};

test.each<{ when: string; does: string[]; done?: boolean } & Partial<RetireObserved>>([
  {
    when: 'the drain begins',
    node: node(false),
    pods: [pod('a'), pod('b', { terminating: true })],
    does: ['cordon', 'evict a'],
  },
  { when: 'pods of a DaemonSet are there', pods: [pod('a'), pod('d', { daemon: true })], does: ['evict a'] },
  { when: 'only pods of a DaemonSet are left', pods: [pod('d', { daemon: true })], does: ['deleteNode'] },
  {
    when: 'the Node is gone and pods of a DaemonSet are left',
    node: undefined,
    pods: [pod('d', { daemon: true })],
    does: ['delete d now'],
  },
  { when: 'no pod is left', does: ['deleteNode'] },
  {
    when: 'the provider still has pods',
    node: undefined,
    left: { shadows: 0, pods: 1, first: 'demo-cons/a' },
    does: [],
  },
  { when: 'the provider was not heard yet', node: undefined, left: undefined, does: [] },
  { when: 'only the Node shall go', node: undefined, left: undefined, final: false, does: [], done: true },
  { when: 'nothing is left', node: undefined, does: [], done: true },
  {
    when: 'the deadline for budgets has passed',
    pods: [pod('a'), pod('b', { terminating: true })],
    ageMs: 100_000,
    does: ['delete a'],
  },
  {
    when: 'the last deadline has passed',
    pods: [pod('a'), pod('b', { terminating: true })],
    ageMs: 150_000,
    does: ['delete a now', 'delete b now'],
  },
  { when: 'the provider is dead', abandoned: true, pods: [pod('b', { terminating: true })], does: ['delete b now'] },
  {
    when: 'the provider is dead and nothing is left here',
    node: undefined,
    abandoned: true,
    left: { shadows: 3, pods: 3 },
    does: [],
    done: true,
  },
])('when $when: $does', ({ when: _, does, done = false, ...observed }) => {
  const plan = steps(observed);
  expect({ actions: plan.actions, done: plan.done }).toEqual({ actions: does, done });
});

test('the message names what blocks', () => {
  const blocked = new Map([['demo/a', 'The disruption budget web needs 1 healthy pods and has 1 currently']]);
  const plan = steps({ pods: [pod('a'), pod('b')], blocked });
  expect(plan.message).toBe(
    '2 pods are left (demo/a, demo/b); blocked: demo/a: The disruption budget web needs 1 healthy pods and has 1 currently',
  );
  expect(plan.againMs).toBe(1_000);
});

test('a drain always ends: at the latest after the last deadline, with any blocking budget and any silent party', () => {
  const anyPod = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    terminating: fc.boolean(),
    daemon: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(anyPod, { selector: ({ name }) => name }),
      fc.boolean(),
      fc.boolean(),
      (wanted, abandoned, final) => {
        let pods = wanted.map(({ name, ...options }) => pod(name, options));
        let there: Node | undefined = node(false);
        let ageMs = 0;
        for (let round = 0; round < 1_000; round++) {
          const left = { shadows: 1, pods: 1, first: 'x' };
          const plan = retire({ ...start, node: there, pods, left, final, abandoned, ageMs }, limits);
          if (plan.done) {
            expect(pods).toEqual([]);
            expect(there).toBeUndefined();
            return;
          }
          expect(plan.message).not.toBe('');
          expect(plan.againMs).toBeGreaterThan(0);
          for (const action of plan.actions) {
            // Evictions are refused and graceful ends never come: only force helps.
            if (action.do === 'delete' && action.graceless) pods = pods.filter((p) => p !== action.pod);
            if (action.do === 'deleteNode') there = undefined;
          }
          ageMs += plan.againMs;
        }
        throw new Error('no end');
      },
    ),
  );
});
