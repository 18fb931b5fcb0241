import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Store } from '#kube/cache/store.ts';
import type { Cache } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { label, managedByShadowPod } from '#shared/domain/liqo-keys.ts';
import { type Amounts, addAmounts, podUsage } from '#shared/domain/pod-resources.ts';
import { leftBehind, trackUsage } from './own-usage.ts';

const step = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'd'),
  gone: fc.boolean(),
  node: fc.constantFrom('one', 'two'),
  cpu: fc.constantFrom('0', '100m', '1'),
});

test('after any pods came, changed and went, the sum of each node equals a count of those on it, and each change of a sum was told', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const store = new Store<Pod>((error) => {
        throw error;
      });
      const cache = {
        type: pods,
        get: ({ namespace, name }: { namespace?: string; name: string }) => store.get(`${namespace}/${name}`),
        subscribe: store.subscribe.bind(store),
      } as unknown as Cache<Pod>;
      let told = 0;
      const { own: usage } = trackUsage(cache, () => told++);
      const living = new Map<string, Pod>();
      const counted = (node: string): Amounts =>
        [...living.values()]
          .filter(({ spec }) => spec?.nodeName === node)
          .map(({ spec }) => podUsage(spec ?? { containers: [] }))
          .reduce(addAmounts, {});
      const some = (amounts: Amounts) => Object.fromEntries(Object.entries(amounts).filter(([, of]) => of > 0n));
      let serial = 0;
      for (const { name, gone, node, cpu } of steps) {
        const before = [told, counted('one'), counted('two')] as const;
        if (gone) {
          store.remove(`demo/${name}`);
          living.delete(name);
        } else {
          const pod: Pod = {
            apiVersion: 'v1',
            kind: 'Pod',
            metadata: { name, namespace: 'demo', uid: name, resourceVersion: String(++serial) },
            spec: { nodeName: node, containers: [{ name: 'app', resources: { requests: { cpu } } }] },
          };
          store.put(pod);
          living.set(name, pod);
        }
        for (const each of ['one', 'two']) expect(some(usage(each))).toEqual(some(counted(each)));
        const moved = [counted('one'), counted('two')].some((sum, i) => {
          const was = i === 0 ? before[1] : before[2];
          return ['cpu', 'pods'].some((resource) => (sum[resource] ?? 0n) !== (was[resource] ?? 0n));
        });
        expect(told > before[0]).toBe(moved);
      }
    }),
  );
});

test("pods of guests count for the slice they were made for, and never as the cluster's own", () => {
  const store = new Store<Pod>(() => undefined);
  const cache = {
    type: pods,
    get: ({ namespace, name }: { namespace?: string; name: string }) => store.get(`${namespace}/${name}`),
    subscribe: store.subscribe.bind(store),
  } as unknown as Cache<Pod>;
  const told: unknown[] = [];
  const usage = trackUsage(cache, (guest) => told.push(guest));
  const labels = { [label.managedBy]: managedByShadowPod, [label.origin]: 'rome', [label.creatorUser]: 'big-1' };
  const put = (name: string, nodeName: string | undefined) =>
    store.put({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'demo', uid: name, resourceVersion: '1', labels },
      spec: { ...(nodeName && { nodeName }), containers: [{ name: 'app', resources: { requests: { cpu: '1' } } }] },
    });
  put('a', 'one');
  put('b', 'two');
  put('unplaced', undefined);
  const one = 1_000_000_000n;
  const guest = { consumer: 'rome', creator: 'big-1' };
  expect(usage.guests()).toEqual([{ ...guest, amounts: { cpu: 2n * one, pods: 2n * one } }]);
  expect(usage.own('one')).toEqual({});
  expect(leftBehind(usage, new Set())).toEqual([{ ...guest, resources: { cpu: '2', pods: '2' } }]);
  expect(leftBehind(usage, new Set(['big-1']))).toEqual([]);
  expect(told).toEqual([guest, guest]);
  store.remove('demo/a');
  store.remove('demo/b');
  expect(usage.guests()).toEqual([]);
});
