/**
 * The controllers of ranges are killed at every single write, in turn, while events come in any order, twice or not at all: after their restart the
 * end state is the same as without a kill, and no address has two holders.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { rangeNodes } from '#agent/model/network-selections.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cache, Caches, Change, Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { casesOf } from '#test/harness/cases.ts';
import { crashingClient } from '#test/harness/crashing-client.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  type GatewayClusters,
  namespace,
  nodeStatus,
  peer,
  peerLabels,
  startGatewayClusters,
} from '#test/harness/gateway-clusters.ts';
import { createInternalFabricController } from '../overlay/internal-fabric/controller.ts';
import { createInternalNodeController } from '../overlay/internal-node/controller.ts';
import { createNetworkIpam } from './cluster-ipam.ts';
import { createConfigurationController } from './configuration/controller.ts';
import { createIpController } from './ip/controller.ts';
import { createNetworkController } from './network/controller.ts';

const { configurations, gatewayClients, internalFabrics, internalNodes, ips, networks } = networkKinds;
const patient = { withinMs: 50_000 };
let world: GatewayClusters;

const beginning = systemClock.now();
/** A thousand seconds pass in one: what a lost event delays until the next resync is here soon. */
const hasty: Clock = {
  now: () => beginning + (systemClock.now() - beginning) * 1_000,
  sleep: (ms, signal) => systemClock.sleep(ms / 1_000, signal),
};

/** Repeatable: the same seed, the same trouble. */
function randomOf(seed: number): () => number {
  let state = seed * 2_654_435_761 + 1;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 3_266_489_917) >>> 0;
    return state / 2 ** 32;
  };
}

/** Of each change, one in five is never told, one in four twice, and all of them late and in another order. */
function troubled(caches: Caches, random: () => number): Caches {
  const wrap = <T extends KubeObject>(cache: Cache<T>): Cache<T> => ({
    type: cache.type,
    get: (ref) => cache.get(ref),
    list: () => cache.list(),
    byIndex: (index, value) => cache.byIndex(index, value),
    synced: (signal) => cache.synced(signal),
    isSynced: () => cache.isSynced(),
    ageMs: () => cache.ageMs(),
    subscribe: (listener: (change: Change<T>) => void) =>
      cache.subscribe((change) => {
        if (random() < 0.2) return;
        for (let copies = random() < 0.25 ? 2 : 1; copies > 0; copies--)
          setTimeout(() => listener(change), Math.floor(random() * 20));
      }),
  });
  return {
    cache: (type, options) => wrap(caches.cache(type, options)),
    scoped: (type, options, signal) => wrap(caches.scoped(type, options, signal)),
    synced: (signal) => caches.synced(signal),
  };
}

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** The controllers of ranges, with a memory of their own. */
async function start(writesLeft: number, seed: number): Promise<{ died: Promise<void>; kill(): void }> {
  const stop = new AbortController();
  const deps = { clock: hasty, log: silentLog };
  const own = openCluster(
    await connectKubeconfig(world.kubeconfig),
    { clock: systemClock, log: silentLog },
    stop.signal,
  );
  const { api, died } = crashingClient(own.api, writesLeft);
  const cluster: Cluster = { api, caches: troubled(own.caches, randomOf(seed)), events: { emit() {} } };
  const common = { ...deps, cluster, clusterId: 'rome', systemNamespace: 'liqo' };
  const ranges = { ...common, state: createNetworkIpam(cluster, rangeNodes(cluster.caches)) };
  const all = [
    createNetworkController(ranges),
    createIpController(ranges),
    createConfigurationController(common),
    createInternalNodeController(ranges),
    createInternalFabricController(ranges),
  ];
  for (const controller of all) void controller.run(stop.signal);
  const kill = () => stop.abort();
  stops.push(kill);
  return { died, kill };
}

const create = (type: ResourceType, name: string, spec: object, where?: string, metadata: object = {}) =>
  world.cluster.api.create(type, {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name, ...(where === undefined ? {} : { namespace: where }), ...metadata },
    spec,
  } as KubeObject);

const local = (name: string, type: string, cidr: string, spec: object = {}) =>
  create(networks, name, { cidr, ...spec }, 'liqo', {
    labels: { 'ipam.liqo.io/network-type': type },
    annotations: { 'liqo.io/preinstalled': 'true' },
  });

/** A peer with our own ranges, a gateway with an active pod, a node, a host: everything that is granted something. */
const makeAll: readonly (() => Promise<unknown>)[] = [
  () =>
    create(
      configurations,
      peer,
      { remote: { cidr: { pod: ['10.200.0.0/16', '10.201.0.0/16'], external: ['10.70.0.0/16'] } } },
      namespace,
      { labels: peerLabels },
    ),
  async () => {
    const spec = { endpoint: { addresses: ['198.51.100.1'], port: 30_000, protocol: 'UDP' }, mtu: 1400 };
    await create(gatewayClients, peer, spec, namespace, { labels: peerLabels });
    const status = { internalEndpoint: { ip: '10.200.1.5' } };
    await world.cluster.api.mergePatch(
      gatewayClients,
      { namespace, name: peer },
      { status },
      { subresource: 'status' },
    );
  },
  () =>
    world.cluster.api.create(nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n3' },
      status: nodeStatus('n3', '192.0.2.13'),
    } as never),
  () => create(ips, 'host-a', { ip: '172.30.0.1' }, 'liqo'),
  () => create(ips, 'host-b', { ip: '172.30.0.2', serviceTemplate: { spec: { ports: [{ port: 80 }] } } }, 'liqo'),
];

async function everything() {
  const { api } = world.cluster;
  const [allNetworks, allIps, allNodes, allFabrics, configuration] = await Promise.all([
    api.list(networks),
    api.list(ips),
    api.list(internalNodes),
    api.list(internalFabrics),
    api.get(configurations, { namespace, name: peer }),
  ]);
  return { allNetworks, allIps, allNodes, allFabrics, configuration };
}
type Everything = Awaited<ReturnType<typeof everything>>;

function nobodyHoldsWhatAnotherHolds({ allNetworks, allIps, allNodes, allFabrics }: Everything): void {
  const granted = [
    ...allIps.flatMap(({ status }) => status?.ip ?? []),
    ...allNodes.map(({ spec }) => spec.interface.node.ip),
    ...allFabrics.map(({ spec }) => spec.interface.gateway.ip),
    ...allNetworks.flatMap(({ status }) => status?.cidr ?? []),
  ];
  expect(new Set(granted).size, granted.join(' ')).toBe(granted.length);
}

const complete = (): Promise<Everything> =>
  eventually(
    'everything granted',
    async () => {
      const found = await everything();
      nobodyHoldsWhatAnotherHolds(found);
      const { allNetworks, allIps, allNodes, allFabrics, configuration } = found;
      const condition = configuration?.status?.conditions?.[0];
      expect([condition?.status, configuration?.status?.remote?.cidr.pod.length]).toEqual(['True', 2]);
      expect(allNetworks.map(({ metadata, status }) => [metadata.name, status?.cidr !== undefined])).toEqual(
        allNetworks.map(({ metadata }) => [metadata.name, true]),
      );
      expect(
        allIps
          .filter(({ status }) => status?.ip !== undefined)
          .map(({ metadata }) => metadata.name)
          .sort(),
      ).toEqual(['host-a', 'host-b', 'milan-unknown-source', 'node-n1', 'node-n2', 'node-n3']);
      expect(allNodes.map(({ metadata }) => metadata.name).sort()).toEqual(['n1', 'n2', 'n3']);
      expect(allFabrics.map(({ spec }) => spec.remoteCIDRs?.length)).toEqual([3]);
      return found;
    },
    patient,
  );

const removed = (): Promise<Everything> =>
  eventually(
    'nothing but the installation',
    async () => {
      const found = await everything();
      expect(found.allNetworks.map(({ metadata }) => metadata.name).sort()).toEqual([
        'external-cidr',
        'internal-cidr',
        'pod-cidr',
      ]);
      expect(found.allIps.map(({ metadata }) => metadata.name).sort()).toEqual(['node-n1', 'node-n2']);
      expect(found.allNodes.map(({ metadata }) => metadata.name).sort()).toEqual(['n1', 'n2']);
      expect(found.allFabrics).toEqual([]);
      return found;
    },
    patient,
  );

async function removeAll(): Promise<void> {
  const { api } = world.cluster;
  await api.delete(gatewayClients, { namespace, name: peer });
  await api.delete(configurations, { namespace, name: peer });
  await api.delete(nodes, { name: 'n3' });
  for (const name of ['host-a', 'host-b']) await api.delete(ips, { namespace: 'liqo', name });
}

/** Runs controllers that die at write number `moment` (or have nothing left to write), then others that live until `reached`. */
async function interrupted(moment: number, act: () => Promise<unknown>, reached: () => Promise<Everything>) {
  const first = await start(moment, moment + 1);
  await act();
  const once = reached();
  await Promise.race([first.died, once]);
  const before = await everything();
  nobodyHoldsWhatAnotherHolds(before);
  first.kill();
  const second = await start(Number.POSITIVE_INFINITY, moment + 1_000);
  await once;
  const after = await reached();
  second.kill();
  return { before, after };
}

const addresses = ({ allIps, allNetworks, allNodes, allFabrics }: Everything): Map<string, string> =>
  new Map(
    [
      ...allIps.map((one) => [one, one.status?.ip] as const),
      ...allNetworks.map((one) => [one, one.status?.cidr] as const),
      ...allNodes.map((one) => [one, one.spec.interface.node.ip] as const),
      ...allFabrics.map((one) => [one, one.spec.interface.gateway.ip] as const),
    ].flatMap(([object, granted]) =>
      granted === undefined ? [] : [[`${object.kind} ${object.metadata.uid ?? refOf(object).name}`, granted]],
    ),
  );

beforeAll(async () => {
  world = await startGatewayClusters();
  await local('pod-cidr', 'pod-cidr', '10.200.0.0/16');
  await local('external-cidr', 'external-cidr', '10.70.0.0/16', { preAllocated: 1 });
  await local('internal-cidr', 'internal-cidr', '10.80.0.0/16');
  const first = await start(Number.POSITIVE_INFINITY, 7);
  await removed();
  first.kill();
}, 300_000);
afterAll(async () => await world?.stop());

const moments = Array.from({ length: 26 }, (_, moment) => moment);

test.each(casesOf(moments, [0, 3, 7, 12, 16, 21, 25]))(
  'killed at write %i of making and of taking back, the controllers reach the same end state, and no object loses its grant',
  async (moment) => {
    const random = randomOf(moment);
    const order = makeAll.toSorted(() => random() - 0.5);
    const made = await interrupted(
      moment,
      async () => {
        for (const make of order) await make();
      },
      complete,
    );
    const kept = addresses(made.after);
    for (const [object, granted] of addresses(made.before)) expect(kept.get(object)).toBe(granted);
    await interrupted(moment % 13, removeAll, removed);
  },
  120_000,
);
