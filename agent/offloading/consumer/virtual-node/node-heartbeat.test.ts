import { expect, test } from 'vitest';
import { Store } from '#kube/cache/store.ts';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { NodeKeeper } from './node-heartbeat.ts';
import type { NodeInput } from './node-object.ts';

const node: Node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'milan', uid: 'u1', labels: { [label.type]: virtualNodeType, [label.remoteClusterId]: 'milan' } },
};

const input: NodeInput = {
  virtualNode: {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'VirtualNode',
    metadata: { name: 'milan', namespace: 't' },
    spec: { clusterID: 'milan', resourceQuota: { hard: { cpu: '4' } } },
  },
  hostIp: '10.1.1.1',
  port: 11_300,
  version: 'v1.34.4',
  network: 'none',
};

function keeper(renew: (signal: AbortSignal) => Promise<never>) {
  const said: unknown[] = [];
  const log: Log = {
    ...silentLog,
    with: () => log,
    warn: (message, fields) => void said.push([message, fields?.code]),
  };
  const one = new NodeKeeper({
    api: { mergePatch: (...[, , , , signal]: unknown[]) => renew(signal as AbortSignal) } as unknown as KubeApi,
    nodes: { get: () => node } as unknown as Cache<Node>,
    name: 'milan',
    input: () => ({ virtualNode: { spec: { clusterID: 'milan' } } }) as NodeInput,
    onTaken: () => undefined,
    clock: new ManualClock(),
    log,
  });
  return { one, said };
}

test('a lease that cannot be renewed is told of', async () => {
  const { one, said } = keeper(() => Promise.reject(new AppError('kube_forbidden', 'no rights on leases')));
  await one.renewLease(new AbortController().signal);
  expect(said).toEqual([['the node lease was not renewed', 'kube_forbidden']]);
});

test('a virtual node that stops while its lease is being renewed raises no alarm', async () => {
  const stop = new AbortController();
  const { one, said } = keeper(
    (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  );
  const renewing = one.renewLease(stop.signal);
  stop.abort();
  await renewing;
  expect(said).toEqual([]);
});

test('a Node that was just made is not made again while the cache does not show it, and is once its deletion was delivered', async () => {
  const store = new Store<Node>(() => undefined);
  const nodes = {
    get: ({ name }: { name: string }) => store.get(name),
    subscribe: store.subscribe.bind(store),
    synced: async () => undefined,
  } as unknown as Cache<Node>;
  const stop = new AbortController();
  const writes: string[] = [];
  let version = 0;
  let last: Node = node;
  const answer = (what: string, uid = last.metadata.uid): Node => {
    writes.push(what);
    version += 1;
    last = { ...node, metadata: { ...node.metadata, resourceVersion: `${version}`, ...(uid && { uid }) } };
    return last;
  };
  const api = {
    create: async ({ kind }: { kind: string }) => (kind === 'Node' ? answer('create', `u${version}`) : {}),
    mergePatch: async ({ kind }: { kind: string }) => (kind === 'Node' ? answer('patch') : {}),
  } as unknown as KubeApi;
  let passes = 0;
  const one = new NodeKeeper({
    api,
    nodes,
    name: 'milan',
    input: () => input,
    onTaken: () => void passes++,
    clock: new ManualClock(),
    log: silentLog,
  });
  const running = one.run(stop.signal);
  const looked = async (): Promise<void> => {
    const before = passes;
    one.look();
    await expect.poll(() => passes, { timeout: 30_000 }).toBeGreaterThan(before);
  };
  const created = () => writes.filter((what) => what === 'create').length;
  await expect.poll(() => passes, { timeout: 30_000 }).toBe(1);
  await looked();
  expect(created()).toBe(1);
  store.put(last);
  await looked();
  expect(created()).toBe(1);
  store.remove('milan');
  await looked();
  expect(created()).toBe(2);
  stop.abort();
  await running;
});
