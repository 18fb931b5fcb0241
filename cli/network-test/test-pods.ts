/** Puts the test pods and their Services into both clusters, and takes them away again. */
import type { KubeTarget } from '#cli/cluster/kubeconfig-files.ts';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import type { Step } from '#cli/output/progress.ts';
import { daemonSets, endpointSlices, namespaces, pods, services } from '#shared/domain/core-kinds.ts';
import { type Pod, refOf } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import {
  daemonSet,
  externalIp,
  externalName,
  isOurs,
  namespaceManifest,
  networkLabelKey,
  peerService,
  serviceName,
  testNamespace,
} from './manifests.ts';
import { type TestPod, type TestSide, viewOf } from './plan.ts';
import type { Side } from './side.ts';

const fieldManager = 'isthmus-network-test';
const pollMs = 200;
const removalMs = 60_000;

export interface Ground {
  readonly target: KubeTarget;
  readonly kube: KubeClient;
  readonly side: Side;
}

export interface Wait {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** On the clock. */
  readonly deadline: number;
}

async function until<T>(wait: Wait, look: () => Promise<T | undefined>): Promise<T | undefined> {
  for (;;) {
    const found = await look();
    if (found !== undefined || wait.clock.now() >= wait.deadline) return found;
    await wait.clock.sleep(pollMs, wait.signal);
  }
}

/** One pod in the pods' network and one in the node's, on each node that is ready. */
export async function placePods({ kube, side }: Ground): Promise<void> {
  const { cluster, image } = side;
  if (image === undefined) {
    throw new AppError('not_found', `no node process is installed in ${cluster} (DaemonSet liqo/isthmus-fabric)`, {
      detail: { remedy: `install Isthmus there: \`isthmus join ${cluster}\` or \`isthmus install\`` },
    });
  }
  await kube.apply(namespaces, namespaceManifest(), fieldManager);
  await Promise.all(
    (['pod', 'host'] as const).map((network) => kube.apply(daemonSets, daemonSet(image, network), fieldManager)),
  );
}

export interface Placed {
  readonly pods: readonly TestPod[];
  /** Nodes from and to which nothing can be tested, and why. */
  readonly missing: readonly string[];
}

/** Waits until they run everywhere, or for as long as that may take. */
export async function runningPods({ kube, side }: Ground, wait: Wait, step: Pick<Step, 'update'>): Promise<Placed> {
  const wanted = side.nodes.filter(({ ready }) => ready).flatMap(({ name }) => [`${name} pod`, `${name} host`]);
  let seen: Pod[] = [];
  let found: TestPod[] = [];
  await until(wait, async () => {
    seen = (await kube.list(pods, networkLabelKey)).filter(({ metadata }) => !metadata.deletionTimestamp);
    found = seen.flatMap(testPod);
    step.update(`${found.length} of ${wanted.length} pods in ${side.cluster}`);
    return found.length >= wanted.length ? true : undefined;
  });
  const there = new Set(found.map(({ node, host }) => `${node} ${host ? 'host' : 'pod'}`));
  const why = (place: string): string => {
    const [node = '', network = ''] = place.split(' ');
    const pod = seen.find((one) => one.spec?.nodeName === node && one.metadata.labels?.[networkLabelKey] === network);
    const waiting = pod?.status?.containerStatuses?.[0]?.state?.waiting;
    return `${side.cluster}/${node}: ${pod === undefined ? 'there is no test pod' : `the test pod is ${pod.status?.phase}${waiting?.reason ? `, ${waiting.reason}` : ''}`}`;
  };
  return { pods: found, missing: wanted.filter((place) => !there.has(place)).map(why) };
}

function testPod({ metadata, spec, status }: Pod): TestPod[] {
  const running = status?.containerStatuses?.some(({ ready }) => ready) ?? false;
  if (!running || !status?.podIP || !spec?.nodeName) return [];
  const host = metadata.labels?.[networkLabelKey] === 'host';
  return [{ name: metadata.name, node: spec.nodeName, ip: status.podIP, host }];
}

export interface ServicesWanted {
  readonly peerPods: readonly TestPod[];
  readonly nodePort: boolean;
  readonly external?: { readonly ip: string; readonly port: number };
}

/** A Service with the peer's pods behind it, and an address for the host outside. */
export async function placeServices(
  { kube, side }: Ground,
  { peerPods, nodePort, external }: ServicesWanted,
  wait: Wait,
): Promise<Pick<TestSide, 'service' | 'external'>> {
  const views = peerPods.filter(({ host }) => !host).flatMap(({ ip }) => viewOf(side, ip) ?? []);
  const [service, slice] = peerService(nodePort, views);
  const [made] = await Promise.all([
    kube.apply(services, service, fieldManager),
    kube.apply(endpointSlices, slice, fieldManager),
    external && kube.apply(networkKinds.ips, externalIp(external.ip), fieldManager),
  ]);
  const port = made.spec?.ports?.[0]?.nodePort;
  const exposed = external && (await until(wait, () => exposedAddress(kube)));
  return {
    ...(made.spec?.clusterIP && { service: { clusterIp: made.spec.clusterIP, ...(port && { nodePort: port }) } }),
    ...(external && { external: { ...external, ...(exposed && { exposed }) } }),
  };
}

const exposedAddress = async (kube: KubeClient): Promise<string | undefined> =>
  (await kube.get(networkKinds.ips, { namespace: testNamespace, name: externalName }))?.status?.ip;

/** With credentials and time of its own, since it is also for when the test was interrupted. False when there was nothing. */
export async function removeTest(target: KubeTarget, clock: Clock): Promise<boolean> {
  const signal = AbortSignal.timeout(removalMs);
  const kube = await openCluster(target, { clock, signal });
  const namespace = await kube.get(namespaces, { name: testNamespace });
  if (namespace === undefined) return false;
  if (!isOurs(namespace)) {
    throw new AppError('in_use', `the namespace ${testNamespace} exists and is not of a network test`, {
      detail: { remedy: `delete or rename it; network tests need that name` },
    });
  }
  await kube.delete(services, { namespace: testNamespace, name: serviceName });
  await kube.delete(namespaces, refOf(namespace));
  const wait = { clock, signal, deadline: clock.now() + removalMs };
  const gone = await until(wait, async () =>
    (await kube.get(namespaces, { name: testNamespace })) ? undefined : true,
  );
  if (gone) return true;
  throw new AppError('deadline_exceeded', `namespace ${testNamespace} is still being deleted`, {
    detail: { remedy: `look at what holds it: kubectl get namespace ${testNamespace} -o yaml` },
  });
}
