/**
 * A provider's API server that lies in every field: lists and watches of generated JSON, whole or damaged anywhere. What follows it goes on, shows none of
 * its addresses as those of a pod, and has the truth as soon as the server tells it.
 */
import { createServer, type ServerResponse } from 'node:http';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { pruneRemotePod } from '#agent/offloading/consumer/pods/cache-transforms.ts';
import { reflectedStatus } from '#agent/offloading/consumer/pods/pod-status.ts';
import { createCaches } from '#kube/cache/informer-factory.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { countOf, drawn } from '#test/harness/cases.ts';
import { eventually } from '#test/harness/eventually.ts';
import { connectTo } from '#test/harness/plain-server.ts';

/** Providers at a time, each with a cache of its own: a cache mostly waits for its provider. */
const providers = countOf(16, 1);
/** Lies of each. */
const runs = drawn(Math.ceil(10_000 / providers), { numRuns: 150, seed: 1 });
const closers: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

const honest = (name: string, resourceVersion = '5') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'apps', uid: `uid-${name}`, resourceVersion, labels: { a: 'b' } },
  status: {
    phase: 'Running',
    hostIP: '192.0.2.1',
    podIP: '10.9.0.7',
    podIPs: [{ ip: '10.9.0.7' }],
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    containerStatuses: [
      { name: 'app', ready: true, restartCount: 1, image: 'i', imageID: 'i', state: { running: {} } },
    ],
  },
});
const places = [
  ['metadata'],
  ['metadata', 'name'],
  ['metadata', 'namespace'],
  ['metadata', 'uid'],
  ['metadata', 'resourceVersion'],
  ['metadata', 'labels'],
  ['metadata', 'annotations'],
  ['metadata', 'deletionTimestamp'],
  ['metadata', 'ownerReferences'],
  ['status'],
  ['status', 'phase'],
  ['status', 'podIP'],
  ['status', 'podIPs'],
  ['status', 'hostIP'],
  ['status', 'conditions'],
  ['status', 'conditions', '0'],
  ['status', 'containerStatuses'],
  ['status', 'containerStatuses', '0'],
  ['status', 'containerStatuses', '0', 'restartCount'],
  ['status', 'initContainerStatuses'],
  ['status', 'reason'],
  ['status', 'message'],
] as const;
const value = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    0,
    -1,
    1e308,
    '',
    '169.254.169.254',
    '10.96.0.1',
    '::1',
    'x'.repeat(5_000),
    true,
    [],
    {},
  ),
  fc.constantFrom<unknown>([null], [{ ip: '169.254.169.254' }], { __proto__: { a: 1 } }, ['__proto__'], {
    length: 1e9,
  }),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Replaces what is there; goes no further than the first thing that holds no members. */
function lied(object: object, path: readonly string[], to: unknown): object {
  const copy = structuredClone(object);
  let here = copy as Record<string, unknown>;
  for (const step of path.slice(0, -1)) {
    const next = here[step];
    if (typeof next !== 'object' || next === null) return copy;
    here = next as Record<string, unknown>;
  }
  here[path.at(-1) ?? ''] = to;
  return copy;
}
const pod = fc
  .array(fc.tuple(fc.constantFrom(...places), value), { maxLength: 3 })
  .map((lies) => lies.reduce<object>((object, [path, to]) => lied(object, path, to), honest('web')));
const text = fc.oneof(
  { weight: 8, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom('', 'null', '[]', '{', '{"items":', '<html>', '\0') },
);
const list = fc.record({
  items: fc.oneof({ weight: 6, arbitrary: fc.array(pod, { maxLength: 3 }) }, { weight: 1, arbitrary: value }),
  metadata: fc.oneof({ weight: 6, arbitrary: fc.constant({ resourceVersion: '5' }) }, { weight: 1, arbitrary: value }),
});
const event = fc.record({
  type: fc.constantFrom<unknown>('ADDED', 'ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR', 'added', 7, null),
  object: fc.oneof({ weight: 6, arbitrary: pod }, { weight: 1, arbitrary: value }),
});
const lies = fc.record({
  status: fc.constantFrom(200, 200, 200, 200, 404, 410, 429, 500, 302),
  list,
  listText: text,
  events: fc.array(event, { maxLength: 5 }),
  eventsText: text,
});
type Lies = typeof lies extends fc.Arbitrary<infer T> ? T : never;

test('a provider that lies in every field of every answer costs its own caches, and they have the truth once it tells it', async () => {
  await Promise.all(Array.from({ length: providers }, followLiar));
}, 900_000);

async function followLiar(): Promise<void> {
  let now: Lies | undefined;
  let told = 0;
  /** Of the truth; another one after each lie, which may have been told about any earlier one. */
  let version = '100';
  const watches = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    const isWatch = request.url?.includes('watch=1') === true;
    told += 1;
    response.writeHead(now?.status ?? 200, { 'content-type': 'application/json' });
    if (!isWatch) {
      const answer = now?.list ?? {
        metadata: { resourceVersion: version },
        items: [honest('web', version), honest('db', version)],
      };
      return void response.end(now?.listText ?? JSON.stringify(answer));
    }
    if (now !== undefined)
      return void response.end(now.eventsText ?? now.events.map((one) => `${JSON.stringify(one)}\n`).join(''));
    // What it said before is of no version that it knows: the cache lists again, and then watches in silence.
    if (!request.url?.includes(`resourceVersion=${version}&`)) {
      const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' };
      return void response.end(`${JSON.stringify({ type: 'ERROR', object: status })}\n`);
    }
    watches.add(response);
    response.once('close', () => watches.delete(response));
    response.flushHeaders();
  });
  const { connection, close } = await connectTo(server);
  closers.push(close);
  const stop = new AbortController();
  closers.unshift(() => stop.abort());
  // No pause before the next try.
  const timing = { backoffBaseMs: 1, backoffMaxMs: 1 };
  const caches = createCaches(connection, { clock: systemClock, log: silentLog }, stop.signal, { timing });
  const cache = caches.cache(pods, { transform: pruneRemotePod });
  let seen = 0;
  cache.subscribe(() => {
    seen += 1;
  });
  const local = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'apps' } } as Pod;

  await fc.assert(
    fc.asyncProperty(lies, async (some) => {
      now = some;
      for (const watch of watches) watch.end();
      const before = told;
      // A list and its watch, or two lists: a cache asks again at once. A refusal may make it wait.
      const enough = before + (some.status === 200 ? 2 : 1);
      await eventually('the lies to be heard', async () => told >= enough, { withinMs: 20_000, everyMs: 1 });
      for (const remote of cache.list()) {
        const shown = shownOf(local, remote);
        expect([shown?.podIP, shown?.hostIP ?? '192.0.2.9']).toEqual([undefined, '192.0.2.9']);
      }
      version = String(Number(version) + 1);
      now = undefined;
      const isTold = () => namesIn(cache.list()) === 'db,web' && cache.list().every((one) => isTrue(one, version));
      await eventually('the truth', isTold, { withinMs: 20_000, everyMs: 1 });
    }),
    { ...runs, endOnFailure: true },
  );
  expect(seen).toBeGreaterThan(runs.numRuns / 2);
}

const namesIn = (list: readonly Pod[]): string =>
  list
    .map(({ metadata }) => metadata.name)
    .sort()
    .join();
const isTrue = ({ metadata, status }: Pod, version: string): boolean =>
  metadata.resourceVersion === version && status?.podIP === '10.9.0.7' && status.phase === 'Running';

/** As the pod controller makes it of what the cache has; undefined: this pod's pass failed, which costs this pod. */
function shownOf(local: Pod, remote: Pod) {
  try {
    return reflectedStatus({
      local,
      remote,
      hostIp: '192.0.2.9',
      restarts: {},
      available: true,
      now: '2026-01-01T00:00:00Z',
    });
  } catch {
    return undefined;
  }
}
