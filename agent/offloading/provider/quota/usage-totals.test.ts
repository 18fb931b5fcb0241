import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Store } from '#kube/cache/store.ts';
import type { Cache } from '#kube/model/types.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { usageOf } from './fits.ts';
import { UsageTotals, withoutAmounts } from './usage-totals.ts';

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
      const cache = {
        type: shadowPods,
        get: ({ namespace, name }: { namespace?: string; name: string }) => store.get(`${namespace}/${name}`),
        subscribe: store.subscribe.bind(store),
      } as unknown as Cache<ShadowPod>;
      const totals = new UsageTotals(cache);
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
  const cache = {
    get: ({ namespace, name }: { namespace?: string; name: string }) => store.get(`${namespace}/${name}`),
    subscribe: store.subscribe.bind(store),
  } as unknown as Cache<ShadowPod>;
  const begun = new Set<string>();
  const totals = new UsageTotals(cache, ({ metadata }) => begun.has(metadata.name));
  store.put({
    metadata: { name: 'a', namespace: 'demo', resourceVersion: '1', labels: { [label.creatorUser]: 'rome' } },
    spec: { pod: { containers: [{ name: 'app', resources: { requests: { cpu: '1' } } }] } },
  } as unknown as ShadowPod);
  expect(totals.of('rome')).toEqual({});
  begun.add('a');
  totals.look('demo/a');
  expect(totals.of('rome')).toEqual({ cpu: 1_000_000_000n, pods: 1_000_000_000n });
});
