/** `liqoctl test network` (docs/design/control-plane.md#what-does-liqoctl-need), with `--pod-np`, and `--np-ext`, `--lb` and `--ip` where they are asked for. */
import { setTimeout as timer } from 'node:timers/promises';
import { moveAddress } from '#shared/domain/cidr.ts';
import {
  type Deployment,
  deployments,
  endpointSlices,
  namespaces,
  nodes,
  pods,
  type Service,
  services,
} from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type Node, type Pod, refOf } from '#shared/domain/kube-object.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { clusterIdOf, createIfAbsent, createWaits, peerLabel, type Target, type Waits } from './requests.ts';

const namespace = 'liqo-test-network';
const app = 'netshoot';
const timeoutMs = 300_000;
/** Its fixed sleeps. */
const pauses = { afterOffloading: 10_000, afterServices: 5_000 } as const;
/** For the address of each IP object. */
const ipMs = 10_000;
const attempts = 10;

export interface Tools {
  /** Of the container: serves HTTP. */
  readonly container: Readonly<Record<string, unknown>>;
  readonly port: number;
  /** `curl` in a pod of a cluster, by exec through its own API server; false: no answer. */
  fetch(cluster: string, pod: string, url: string): Promise<boolean>;
  /** The same from the machine that liqoctl runs on. */
  fetchHere(url: string): Promise<boolean>;
  /** What stands for 1.1.1.1, and serves HTTP. */
  readonly internet: { readonly ip: string; readonly port: number };
}

export interface TestFlags {
  /** `--np-ext`. */
  readonly nodePortsFromHere?: boolean;
  /** `--lb`. */
  readonly loadBalancer?: boolean;
  /** `--ip`. */
  readonly externalIp?: boolean;
}

interface Side {
  readonly id: string;
  readonly target: Target;
}

export interface Checked {
  readonly what: string;
  readonly from: string;
  readonly to: string;
  readonly passed: boolean;
}

export async function testNetwork(
  consumer: Target,
  providers: readonly Target[],
  tools: Tools,
  flags: TestFlags = {},
): Promise<readonly Checked[]> {
  const waits = createWaits(timeoutMs, consumer.pollMs);
  const sides = await Promise.all(
    [consumer, ...providers].map(async (target): Promise<Side> => ({ id: await clusterIdOf(target), target })),
  );
  const total = await setUp(consumer, sides, tools, flags, waits);
  for (const side of sides) await settleSlices(side, side === sides[0] ? ofConsumer : ofProvider, total);
  return [
    ...(await probe(sides, total, tools)),
    ...(flags.nodePortsFromHere ? await probeNodePorts(sides, tools) : []),
    ...(flags.loadBalancer ? await probeLoadBalancers(sides, tools, waits) : []),
    ...(flags.externalIp ? await probeExternalIps(sides, tools) : []),
  ];
}

async function setUp(
  { api }: Target,
  sides: readonly Side[],
  tools: Tools,
  flags: TestFlags,
  waits: Waits,
): Promise<number> {
  const [consumer] = sides;
  for (const node of (await api.list(nodes)).filter(isWorker)) {
    const labels = { ...node.metadata.labels, [peerLabel]: consumer?.id ?? '' };
    await api.update(nodes, { ...node, metadata: { ...node.metadata, labels } });
  }
  await createIfAbsent(api, namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await createIfAbsent(api, namespaceOffloadings, {
    apiVersion: apiVersionOf(namespaceOffloadings),
    kind: 'NamespaceOffloading',
    metadata: { name: 'offloading', namespace },
    spec: {
      podOffloadingStrategy: 'LocalAndRemote',
      namespaceMappingStrategy: 'EnforceSameName',
      clusterSelector: { nodeSelectorTerms: [] },
    },
  });
  await timer(pauses.afterOffloading);
  const wanted: Deployment[] = [];
  let total = 0;
  for (const { id, target } of sides) {
    const workers = (await target.api.list(nodes)).filter(isWorker).length;
    total += workers;
    wanted.push(...[false, true].map((isOnHost) => deploymentOf(id, isOnHost, workers, tools)));
  }
  for (const one of wanted) await createIfAbsent(api, deployments, one);
  for (const one of wanted)
    await waits.until(`${one.metadata.name} ready`, async () => {
      const found = await api.get(deployments, refOf(one));
      return found?.status?.readyReplicas === one.spec?.replicas;
    });
  for (const type of serviceTypes)
    if (type !== 'LoadBalancer' || flags.loadBalancer) await createIfAbsent(api, services, serviceOf(type, tools));
  if (flags.externalIp)
    for (const { id, target } of sides) {
      await createIfAbsent(target.api, networkKinds.ips, externalIpOf(tools));
      await createWaits(ipMs, target.pollMs).until(`an address of ${id}`, async () => grantedAt(target));
    }
  await timer(pauses.afterServices);
  return total;
}

const isWorker = ({ metadata, spec }: Node): boolean =>
  metadata.labels?.['liqo.io/type'] !== 'virtual-node' &&
  !(spec?.taints ?? []).some(({ key }) => key === 'node-role.kubernetes.io/control-plane');

function deploymentOf(id: string, isOnHost: boolean, replicas: number, { container }: Tools): Deployment {
  const name = isOnHost ? `${app}-host-${id}` : `${app}-${id}`;
  const labels = { app: isOnHost ? `${app}-host` : app, cluster: id };
  const spec = {
    ...(isOnHost ? { hostNetwork: true } : {}),
    nodeSelector: { [peerLabel]: id },
    terminationGracePeriodSeconds: 1,
    containers: [isOnHost ? { ...container, args: ['pause'] } : container],
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  } as unknown as Deployment;
}

const serviceTypes = ['ClusterIP', 'NodePort', 'LoadBalancer'] as const;
const serviceNames = { ClusterIP: app, NodePort: `${app}np`, LoadBalancer: `${app}lb` } as const;

const serviceOf = (type: (typeof serviceTypes)[number], { port }: Tools): Service =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: serviceNames[type], namespace },
    spec: { type, selector: { app }, ports: [{ name: 'http', port: 80, targetPort: port }] },
  }) as unknown as Service;

const externalIp = { name: 'external-ip', namespace } as const;
const externalIpOf = ({ internet }: Tools): Ip =>
  ({
    apiVersion: apiVersionOf(networkKinds.ips),
    kind: 'IP',
    metadata: externalIp,
    spec: { ip: internet.ip, masquerade: true },
  }) as Ip;

const slicesOf = async ({ api }: Target) =>
  api.list(endpointSlices, { namespace, labelSelector: `kubernetes.io/service-name=${app}` });
const addressesIn = (slices: Awaited<ReturnType<typeof slicesOf>>): string[] =>
  slices.flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses));

/** How many slices it has to see, and for how long it looks. It counts the endpoints once, as soon as that many are there. */
interface Expected {
  readonly count: number;
  readonly withinMs: number;
}
const ofConsumer: Expected = { count: 1, withinMs: 60_000 };
const ofProvider: Expected = { count: 2, withinMs: 5_000 };
const sliceLooksMs = 5_000;

async function settleSlices({ id, target }: Side, { count, withinMs }: Expected, total: number): Promise<void> {
  const found = await createWaits(withinMs, sliceLooksMs).until(`${count} slices of ${id}`, async () => {
    const seen = await slicesOf(target);
    return seen.length === count ? seen : undefined;
  });
  const endpoints = found.flatMap((slice) => slice.endpoints ?? []).length;
  if (endpoints !== total) throw new Error(`${id} has ${endpoints} endpoints, expected ${total}`);
}

async function probe(sides: readonly Side[], total: number, { port, fetch }: Tools): Promise<Checked[]> {
  const done: Checked[] = [];
  for (const { id, target } of sides) {
    const check = async (what: string, pod: Pod, to: string): Promise<void> => {
      const passed = await attempt(() => fetch(id, pod.metadata.name, `http://${to}/`));
      done.push({ what, from: pod.metadata.name, to, passed });
    };
    const here = await podsOf({ id, target });
    if (here.length === 0) throw new Error(`no pod of ${id} is there`);
    const addresses = addressesIn(await slicesOf(target));
    const clusterIp = (await target.api.get(services, { namespace, name: app }))?.spec?.clusterIP ?? '';
    const nodePort = (await target.api.get(services, { namespace, name: serviceNames.NodePort }))?.spec?.ports?.[0]
      ?.nodePort;
    const hosts = (await target.api.list(nodes)).filter(isWorker).flatMap(internalAddresses);
    for (const pod of here) {
      const isOnHost = pod.metadata.labels?.app !== app;
      for (const address of addresses) await check(isOnHost ? 'node to pod' : 'pod to pod', pod, `${address}:${port}`);
      if (isOnHost) continue;
      for (let call = 0; call < 2 * total; call++) await check('pod to Service', pod, clusterIp);
      for (const host of hosts) await check('pod to NodePort', pod, `${host}:${nodePort}`);
    }
  }
  return done;
}

/** In the cluster that runs them, by the labels that they have kept. */
const podsOf = ({ id, target }: Side): Promise<Pod[]> =>
  target.api.list(pods, { namespace, labelSelector: `cluster=${id}` });

/** Every check is made so often until it passes. */
async function attempt(look: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < attempts; tries++) if (await look()) return true;
  return false;
}

async function checkHere(what: string, to: string, { fetchHere }: Tools): Promise<Checked> {
  return { what, from: 'here', to, passed: await attempt(() => fetchHere(`http://${to}/`)) };
}

async function probeNodePorts(sides: readonly Side[], tools: Tools): Promise<Checked[]> {
  const done: Checked[] = [];
  for (const { target } of sides) {
    const nodePort = (await target.api.get(services, { namespace, name: serviceNames.NodePort }))?.spec?.ports?.[0]
      ?.nodePort;
    for (const host of (await target.api.list(nodes)).filter(isWorker).flatMap(internalAddresses))
      done.push(await checkHere('outside to NodePort', `${host}:${nodePort}`, tools));
  }
  return done;
}

async function probeLoadBalancers(sides: readonly Side[], tools: Tools, waits: Waits): Promise<Checked[]> {
  const done: Checked[] = [];
  for (const { id, target } of sides) {
    const addresses = async (): Promise<readonly string[]> => {
      const service = await target.api.get(services, { namespace, name: serviceNames.LoadBalancer });
      return (service?.status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => ip ?? hostname ?? []);
    };
    await waits.until(`a load balancer of ${id}`, async () => (await addresses()).length > 0);
    for (const address of await addresses()) done.push(await checkHere('outside to LoadBalancer', address, tools));
  }
  return done;
}

const grantedAt = async ({ api }: Target): Promise<string | undefined> =>
  (await api.get(networkKinds.ips, externalIp))?.status?.ip;

/** From every pod the address itself, the one that its own cluster has granted for it, and what that calls those of its peers. */
async function probeExternalIps(sides: readonly Side[], { internet, fetch }: Tools): Promise<Checked[]> {
  const done: Checked[] = [];
  const granted = new Map<string, string>();
  for (const { id, target } of sides) granted.set(id, (await grantedAt(target)) ?? '');
  for (const side of sides) {
    const configurations = await side.target.api.list(networkKinds.configurations);
    const views = configurations.flatMap(({ metadata, spec, status }) => {
      const of = metadata.labels?.[peerLabel] ?? '';
      const [real = '', view = ''] = [spec.remote.cidr.external[0], status?.remote?.cidr.external[0]];
      return moveAddress(granted.get(of) ?? '', real, view) ?? [];
    });
    const targets = [
      ['pod to internet', internet.ip],
      ['pod to own remapped IP', granted.get(side.id) ?? ''],
      ...views.map((view) => ['pod to remapped IP', view] as const),
    ] as const;
    for (const { metadata } of (await podsOf(side)).filter((pod) => pod.metadata.labels?.app === app))
      for (const [what, ip] of targets) {
        const to = `${ip}:${internet.port}`;
        const passed = await attempt(() => fetch(side.id, metadata.name, `http://${to}/`));
        done.push({ what, from: metadata.name, to, passed });
      }
  }
  return done;
}

const internalAddresses = ({ status }: Node): string[] =>
  (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address);

/** `--rm`. */
export async function removeTestNetwork({ api, pollMs }: Target): Promise<void> {
  const waits = createWaits(timeoutMs, pollMs);
  await api.delete(namespaces, { name: namespace });
  await waits.until('namespace gone', async () => (await api.get(namespaces, { name: namespace })) === undefined);
  for (const { metadata } of (await api.list(nodes)).filter(isWorker))
    await api.mergePatch(nodes, { name: metadata.name }, { metadata: { labels: { [peerLabel]: null } } });
}
