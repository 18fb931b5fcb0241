import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Store } from '#kube/cache/store.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { usageOf } from './fits.ts';
import { type UsageSources, UsageTotals, withoutAmounts } from './usage-totals.ts';

const sourcesOf = (shadows: Store<ShadowPod>, pods = new Store<Pod>(() => undefined)) => {
  const cacheOf = (store: Store<ShadowPod> | Store<Pod>) => ({
    get: ({ namespace, name }: { namespace?: string; name: string }) => store.get(`${namespace}/${name}`),
    subscribe: store.subscribe.bind(store),
  });
  const quiet = { subscribe: () => () => undefined };
  const rulebook = { specOf: ({ spec }: ShadowPod) => spec.pod, policies: quiet, quotas: quiet };
  return { shadows: cacheOf(shadows), pods: cacheOf(pods), rulebook } as unknown as UsageSources;
};
const creators = ['rome', 'milan'] as const;
const resources = fc.record(
  {
    cpu: fc.constantFrom('0', '100m', '1', '2500m'),
    memory: fc.constantFrom('64Mi', '1Gi'),
    'example.dev/gpu': fc.constantFrom('1', '2'),
  },
  { requiredKeys: [] },
);
const pod = fc.record({
  containers: fc.array(fc.record({ name: fc.constant('app'), resources: fc.record({ requests: resources }) }), {
    minLength: 1,
    maxLength: 2,
  }),
  initContainers: fc.array(
    fc.record(
      {
        name: fc.constant('first'),
        resources: fc.record({ requests: resources }),
        restartPolicy: fc.constant('Always'),
      },
      { requiredKeys: ['name', 'resources'] },
    ),
    { maxLength: 1 },
  ),
  overhead: resources,
});
const step = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  gone: fc.boolean(),
  creator: fc.option(fc.constantFrom(...creators), { nil: undefined, freq: 8 }),
  phase: fc.constantFrom(undefined, 'Pending', 'Running', 'Succeeded', 'Failed'),
  pod,
});

test('after any ShadowPods were added, changed and removed, the totals equal a count of all that exist', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const store = new Store<ShadowPod>((error) => {
        throw error;
      });
      const totals = new UsageTotals(sourcesOf(store));
      let serial = 0;
      for (const { name, gone, creator, phase, pod: spec } of steps) {
        if (gone) store.remove(`demo/${name}`);
        else {
          const metadata = {
            name,
            namespace: 'demo',
            resourceVersion: String(++serial),
            ...(creator === undefined ? {} : { labels: { [label.creatorUser]: creator } }),
          };
          store.put({ metadata, spec: { pod: spec }, ...(phase ? { status: { phase } } : {}) } as unknown as ShadowPod);
        }
        for (const one of creators) {
          const own = store.list().filter(({ metadata }) => metadata.labels?.[label.creatorUser] === one);
          const counted = Object.entries(usageOf(own)).filter(([, amount]) => amount !== 0n);
          expect(totals.of(one)).toEqual(Object.fromEntries(counted));
          const others = own.filter(({ metadata }) => metadata.name !== name);
          const rest = withoutAmounts(totals.of(one), [totals.part(one, `demo/${name}`)]);
          expect(Object.entries(rest).filter(([, amount]) => amount !== 0n)).toEqual(
            expect.arrayContaining(Object.entries(usageOf(others)).filter(([, amount]) => amount !== 0n)),
          );
        }
      }
    }),
    { numRuns: 300 },
  );
});

test('a ShadowPod counts from when it is looked at after it began to take something', () => {
  const store = new Store<ShadowPod>(() => undefined);
  const begun = new Set<string>();
  const totals = new UsageTotals(sourcesOf(store), ({ metadata }) => begun.has(metadata.name));
  store.put({
    metadata: { name: 'a', namespace: 'demo', resourceVersion: '1', labels: { [label.creatorUser]: 'rome' } },
    spec: { pod: { containers: [{ name: 'app', resources: { requests: { cpu: '1' } } }] } },
  } as unknown as ShadowPod);
  expect(totals.of('rome')).toEqual({});
  begun.add('a');
  totals.look('demo/a');
  expect(totals.of('rome')).toEqual({ cpu: 1_000_000_000n, pods: 1_000_000_000n });
});

test('a pod that outlives its ShadowPod counts until it has ended or is gone, beside the one that takes its name', () => {
  const [shadows, pods] = [new Store<ShadowPod>(() => undefined), new Store<Pod>(() => undefined)];
  const totals = new UsageTotals(sourcesOf(shadows, pods));
  const labels = { [label.creatorUser]: 'rome' };
  const spec = { containers: [{ name: 'app', resources: { requests: { cpu: '1' } } }] };
  let serial = 0;
  const metadata = (uid: string, more: object = {}) => ({
    ...{ name: 'a', namespace: 'demo', uid, resourceVersion: String(++serial), labels },
    ...more,
  });
  const shadow = (uid: string) => shadows.put({ metadata: metadata(uid), spec: { pod: spec } } as unknown as ShadowPod);
  const ownerReferences = [{ kind: 'ShadowPod', uid: 'first', controller: true }];
  const pod = (phase: string) =>
    pods.put({ metadata: metadata('pod', { ownerReferences }), spec, status: { phase } } as unknown as Pod);
  const cpus = () => Number((totals.of('rome').cpu ?? 0n) / 1_000_000_000n);
  shadow('first');
  pod('Running');
  expect(cpus()).toBe(1);
  shadows.remove('demo/a');
  expect(cpus()).toBe(1);
  shadow('second');
  expect(cpus()).toBe(2);
  pod('Failed');
  expect(cpus()).toBe(1);
  pod('Running');
  pods.remove('demo/a');
  expect(cpus()).toBe(1);
  shadows.remove('demo/a');
  expect(cpus()).toBe(0);
});

test('a ShadowPod that became smaller counts as its pod until that is smaller too, and what the API server filled in never does', () => {
  const [shadows, pods] = [new Store<ShadowPod>(() => undefined), new Store<Pod>(() => undefined)];
  const totals = new UsageTotals(sourcesOf(shadows, pods));
  let serial = 0;
  const metadata = (more: object) => ({
    ...{ name: 'a', namespace: 'demo', resourceVersion: String(++serial), labels: { [label.creatorUser]: 'rome' } },
    ...more,
  });
  const specOf = (resources: object) => ({ containers: [{ name: 'app', resources }] });
  const shadow = (resources: object) =>
    shadows.put({ metadata: metadata({ uid: 'one' }), spec: { pod: specOf(resources) } } as unknown as ShadowPod);
  const ownerReferences = [{ kind: 'ShadowPod', uid: 'one', controller: true }];
  const pod = (resources: object) =>
    pods.put({ metadata: metadata({ uid: 'pod', ownerReferences }), spec: specOf(resources) } as unknown as Pod);
  const milli = () => Number((totals.of('rome').cpu ?? 0n) / 1_000_000n);
  shadow({ limits: { cpu: '4' } });
  pod({ requests: { cpu: '4', memory: '1Gi' }, limits: { cpu: '4' } });
  expect(milli()).toBe(4000);
  expect(totals.of('rome').memory).toBeUndefined();
  shadow({ limits: { cpu: '25m' } });
  expect(milli()).toBe(4000);
  shadow({ requests: { cpu: '5' } });
  expect(milli()).toBe(5000);
  shadow({ requests: { cpu: '25m' } });
  expect(milli()).toBe(4000);
  pod({ requests: { cpu: '25m' } });
  expect(milli()).toBe(25);
});

test('a pod that outlives its ShadowPod counts as much as that did, also what was only counted', () => {
  const [shadows, pods] = [new Store<ShadowPod>(() => undefined), new Store<Pod>(() => undefined)];
  const sources = sourcesOf(shadows, pods);
  let policy = '25m';
  let changed = (): void => undefined;
  const rulebook = {
    ...sources.rulebook,
    specOf: () => ({ containers: [{ name: 'app', resources: { requests: { cpu: policy } } }] }),
    policies: {
      subscribe(listener: () => void) {
        changed = listener;
        return () => undefined;
      },
    },
  };
  const totals = new UsageTotals({ ...sources, rulebook } as unknown as UsageSources);
  const milli = () => Number((totals.of('rome').cpu ?? 0n) / 1_000_000n);
  const named = { name: 'a', namespace: 'demo', resourceVersion: '1', labels: { [label.creatorUser]: 'rome' } };
  const spec = { containers: [{ name: 'app' }] };
  shadows.put({ metadata: { ...named, uid: 'one' }, spec: { pod: spec } } as unknown as ShadowPod);
  const ownerReferences = [{ kind: 'ShadowPod', uid: 'one', controller: true }];
  pods.put({ metadata: { ...named, uid: 'pod', ownerReferences }, spec } as unknown as Pod);
  expect(milli()).toBe(25);
  shadows.remove('demo/a');
  expect(milli()).toBe(25);
  policy = '50m';
  changed();
  expect(milli()).toBe(50);
  pods.remove('demo/a');
  expect(milli()).toBe(0);
});
