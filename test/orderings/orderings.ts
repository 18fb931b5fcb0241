/**
 * One ordering: the objects of offloading come to be in a drawn order, with disturbances between them, and every part of both agents hears of each
 * late and in an order of its own. In the end every pod must run where it was meant to, or be gone; otherwise it says which is stuck, and with what.
 */
import { configMaps, namespaces, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { label, virtualNodeTaint, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import type { Random } from './memory-cluster.ts';
import { namespace, OrderingClusters, offloading } from './ordering-clusters.ts';

export interface Ordering {
  /** What was done, in this order. */
  readonly steps: readonly string[];
  /** How long it took, on the clock of the agents, until everything was as it had to be. */
  readonly settledMs: number;
}

/** Longer than the longest pause of a retry (a minute), and less than the five minutes after which everything is looked at again. */
const patienceMs = 150_000;

/** mulberry32: the same seed gives the same ordering. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Step {
  readonly name: string;
  readonly act: () => Promise<void> | void;
}

const local = 'demo';
const remote = 'demo-cons';

/** A pod written without relying on the webhook: it may be bound before anything of its namespace is there. */
const toVirtualNodes = {
  tolerations: [{ key: virtualNodeTaint.key, operator: 'Exists', effect: virtualNodeTaint.effect }],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: label.type, operator: 'In', values: [virtualNodeType] }] }],
      },
    },
  },
};

const podObject = (name: string, more: Record<string, unknown> = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: local, name, labels: { app: name } },
    spec: { containers: [{ name: 'app', image: 'app:1' }], ...toVirtualNodes, ...more },
  }) as unknown as Pod;

const settings: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: local, name: 'settings' },
};
const mounts = { volumes: [{ name: 'settings', configMap: { name: 'settings' } }] };

/** The objects that users want, independent of any removal. Pods of a namespace that is not there yet are asked for again, as their controllers do. */
class DesiredObjects {
  readonly #world: OrderingClusters;
  readonly #wanted = new Map<string, KubeObject>();

  constructor(clusters: OrderingClusters) {
    this.#world = clusters;
  }

  add(object: KubeObject): void {
    this.#wanted.set(`${object.kind}/${object.metadata.name}`, object);
    this.fulfil();
  }

  drop(kind: string, name: string): void {
    this.#wanted.delete(`${kind}/${name}`);
  }

  has(kind: string, name: string): boolean {
    return this.#wanted.has(`${kind}/${name}`);
  }

  fulfil(): void {
    const order = ['Namespace', 'NamespaceOffloading', 'ConfigMap', 'Pod'];
    const byKind = [...this.#wanted.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
    for (const object of byKind) {
      try {
        this.#world.here.create(object as never);
      } catch (error) {
        if (codeOf(error) === undefined) throw error;
      }
    }
  }
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [out[i], out[j]] = [out[j] as T, out[i] as T];
  }
  return out;
}

export async function runOrdering(seed: number): Promise<Ordering> {
  const random = randomOf(seed);
  const clusters = new OrderingClusters(random);
  const wishes = new DesiredObjects(clusters);
  const strategy = random() < 0.5 ? 'Remote' : 'LocalAndRemote';
  const drawn = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const podNames = ['a', 'b', 'c'];

  const making: Step[] = [
    { name: 'namespace', act: () => wishes.add(namespace(local)) },
    { name: `offloading ${strategy}`, act: () => wishes.add(offloading(local, strategy)) },
    { name: 'virtual node', act: () => clusters.addVirtualNode() },
    { name: 'ConfigMap', act: () => wishes.add(settings) },
    { name: 'agent of the consumer', act: () => clusters.startConsumer() },
    { name: 'agent of the provider', act: () => clusters.startProvider() },
    { name: 'pod a', act: () => wishes.add(podObject('a')) },
    { name: 'pod b, with a ConfigMap', act: () => wishes.add(podObject('b', mounts)) },
    { name: 'pod c, a job', act: () => wishes.add(podObject('c', { restartPolicy: 'Never' })) },
  ];
  const remove = (kind: typeof pods, where: string, name: string): void =>
    void clusters.here.delete(kind, { namespace: where, name });
  const disturbances: readonly (() => Step)[] = [
    () => {
      const name = drawn(podNames);
      return { name: `pod ${name} deleted, and made again by its controller`, act: () => remove(pods, local, name) };
    },
    () => {
      const name = drawn(podNames);
      const act = () => {
        wishes.drop('Pod', name);
        remove(pods, local, name);
      };
      return { name: `pod ${name} deleted for good`, act };
    },
    () => {
      const name = drawn(podNames);
      const act = () => void clusters.here.delete(pods, { namespace: local, name }, { gracePeriodSeconds: 0 });
      return { name: `pod ${name} deleted by force`, act };
    },
    () => {
      const name = drawn(podNames);
      const act = () => void clusters.there.delete(pods, { namespace: remote, name });
      return { name: `twin of pod ${name} deleted`, act };
    },
    () => {
      const name = drawn(podNames);
      const act = () => void clusters.there.delete(shadowPods, { namespace: remote, name });
      return { name: `ShadowPod ${name} deleted`, act };
    },
    () => ({
      name: 'copy of the ConfigMap deleted',
      act: () => void clusters.there.delete(configMaps, { namespace: remote, name: 'settings' }),
    }),
    () => ({ name: 'remote namespace deleted', act: () => void clusters.there.delete(namespaces, { name: remote }) }),
    () => {
      const act = () => void clusters.here.delete(namespaceOffloadings, { namespace: local, name: 'offloading' });
      return { name: 'offloading deleted, and applied again', act };
    },
    () => ({ name: 'agent of the consumer killed', act: () => clusters.stopConsumer() }),
    () => ({ name: 'agent of the provider killed', act: () => clusters.stopProvider() }),
    () => ({ name: 'agent of the consumer started', act: () => clusters.startConsumer() }),
    () => ({ name: 'agent of the provider started', act: () => clusters.startProvider() }),
    () => ({ name: 'line cut', act: () => clusters.cut() }),
    () => ({ name: 'line healed', act: () => clusters.heal() }),
    () => {
      const act = () => {
        if (!clusters.there.now(namespaces, { name: remote })) clusters.there.create(namespace(remote));
      };
      return { name: 'a stranger takes the remote name', act };
    },
    () => ({ name: 'a while passes', act: () => clusters.clock.advance(Math.floor(random() * 20_000)) }),
    () => ({ name: 'the rest of both clusters works', act: () => clusters.play() }),
    () => ({ name: 'what is missing is applied again', act: () => wishes.fulfil() }),
  ];

  const extra = Array.from({ length: Math.floor(random() * 14) }, () => drawn(disturbances)());
  const order = shuffled([...making, ...extra], random);
  const mayAbort = order.some(({ name }) => name.startsWith('offloading deleted'));
  try {
    for (const { act } of order) {
      await act();
      await clusters.breathe();
      await clusters.deliver(Math.floor(random() * 12));
      if (random() < 0.4) clusters.play();
    }
    // From here on without disturbances: everything that was asked for is there, and stays.
    clusters.heal();
    await clusters.startProvider();
    await clusters.startConsumer();
    const stranger = clusters.there.now(namespaces, { name: remote });
    if (stranger && !stranger.metadata.annotations) clusters.there.delete(namespaces, { name: remote });
    const settledMs = await clusters.settle(() => {
      wishes.fulfil();
      return stuck(clusters, wishes, mayAbort).length === 0;
    }, patienceMs);
    const left = stuck(clusters, wishes, mayAbort);
    if (left.length > 0) {
      const steps = order.map(({ name }) => name).join(' > ');
      throw new Error(`seed ${seed}, after ${patienceMs / 1_000} s: ${left.join('; ')}\n${steps}`);
    }
    return { steps: order.map(({ name }) => name), settledMs };
  } finally {
    await clusters.end();
  }
}

/** What is not as it has to be; empty in the end. */
function stuck(clusters: OrderingClusters, wishes: DesiredObjects, mayAbort: boolean): string[] {
  const output: string[] = [];
  for (const name of ['a', 'b', 'c']) {
    const here = clusters.here.now(pods, { namespace: local, name });
    const shadow = clusters.there.now(shadowPods, { namespace: remote, name });
    const there = clusters.there.now(pods, { namespace: remote, name });
    const reported = (what: string) => output.push(`pod ${name} ${what}: ${JSON.stringify([here, shadow, there])}`);
    if (!wishes.has('Pod', name)) {
      if (here) reported('is still here');
      if (shadow || there) reported('is still there');
      continue;
    }
    if (!here || here.metadata.deletionTimestamp) {
      reported(here ? 'does not end' : 'is not here');
      continue;
    }
    const phase = here.status?.phase;
    if (phase === 'Succeeded' && here.spec?.restartPolicy === 'Never') continue;
    // It ran there while its namespace stopped being offloaded: that is final, and its controller makes another.
    if (phase === 'Failed' && here.status?.reason === 'OffloadingAborted' && mayAbort) continue;
    if (phase !== 'Running') reported('does not run');
    else if (there?.status?.phase !== 'Running') reported('runs only here');
    else if (!here.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'))
      reported('is not ready');
  }
  return output;
}
