/** Agents die at any moment of a peering's life, on either side: what stands in the end is what would have stood anyway. */
import { afterAll, describe, expect, test } from 'vitest';
import { pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { eventually } from '#test/harness/eventually.ts';
import { waitUntilStable } from '#test/harness/wait-until-stable.ts';
import { everything, type Found, leftovers, lineOf, ofTheAgentItself } from '../inventory.ts';
import { type ClusterName, clusterNames, consumer, isRunning, provider, reported, type Stage } from '../stage.ts';
import { container, pod } from '../workloads.ts';

const seed = Number(process.env.ISTHMUS_SEED ?? Date.now() % 1_000_000);
const namespace = 'churned';
const settling = { withinMs: 60_000, everyMs: 500 } as const;

/** Mulberry32: the same seed, the same moments. */
function randomFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

type Loose = KubeObject & {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly phase?: string;
    readonly offloadingPhase?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
};

/** Of these nothing but their being there is the same each time. */
const ownWay = /^(leases|events|endpointslices|certificatesigningrequests)\b/;

/** Without what is drawn at random each time: the end of the name of a Deployment's pod, the address of a Service. */
function named(one: Found): string {
  const { metadata } = one.object;
  const prefix = one.resource.startsWith('ipaddresses') ? '' : metadata.generateName;
  return lineOf(
    prefix === undefined ? one : { ...one, object: { ...one.object, metadata: { ...metadata, name: `${prefix}…` } } },
  );
}

/** What stands: every object that the peering and the offloading brought, its marks and what its status says, in words that are the same each time. */
async function standing(on: Stage, cluster: ClusterName): Promise<string[]> {
  const all = (await everything(on.api(cluster))).filter(
    (one) => !ofTheAgentItself(one) && !on.baseline[cluster].has(lineOf(one)),
  );
  return all
    .map((one) => {
      if (ownWay.test(one.resource)) return named(one);
      const { status, spec } = one.object as Loose;
      const conditions = (status?.conditions ?? []).map((condition) => `${condition.type}=${condition.status}`).sort();
      const phase = status?.phase ?? status?.offloadingPhase ?? '';
      const node = one.resource === 'pods' ? ` on ${spec?.nodeName}` : '';
      const deleting = one.object.metadata.deletionTimestamp ? ' deleting' : '';
      return `${named(one)}${node} ${phase} ${conditions.join(' ')}${deleting}`.trim();
    })
    .sort();
}

const restingState = (on: Stage, cluster: ClusterName): Promise<readonly string[]> =>
  waitUntilStable(cluster, () => standing(on, cluster), settling);

interface Step {
  readonly name: string;
  readonly run: (on: Stage) => Promise<void>;
}

/** The command line's user tries again while a webhook's agent is away. */
async function untilDone(on: Stage, ...args: readonly string[]): Promise<void> {
  await eventually(
    `isthmus ${args.join(' ')} succeeds`,
    async () => {
      const ended = await on.world.isthmus(...args);
      if (ended.code === 0 || /is offloaded already, exactly like this/.test(ended.stderr)) return true;
      throw new Error(reported(ended));
    },
    settling,
  );
}

const onKubeconfig = (on: Stage): string[] => ['--kubeconfig', on.world.cluster(consumer).kubeconfigPath];

const steps: readonly Step[] = [
  { name: 'peering', run: async (on) => void (await on.mustPeer()) },
  {
    name: 'offloading',
    run: async (on) => {
      await on.createNamespace(namespace);
      await untilDone(on, 'offload', 'namespace', namespace, '--strategy', 'Remote', ...onKubeconfig(on));
    },
  },
  {
    name: 'pods coming and going',
    run: async (on) => {
      const main = [container(['pause'])];
      await on.apply(consumer, pod(namespace, 'stays', main), pod(namespace, 'goes', main));
      await on.podThat(consumer, [namespace, 'goes'], 'runs', isRunning);
      await on.api(consumer).delete(pods, { namespace, name: 'goes' });
      await on.api(provider).delete(pods, { namespace: `${namespace}-${consumer}`, name: 'stays' });
      await on.apply(consumer, pod(namespace, 'comes', main));
      await on.podThat(consumer, [namespace, 'comes'], 'runs', isRunning);
    },
  },
];
const ending: readonly Step[] = [
  { name: 'unpeering', run: async (on) => void (await on.world.mustIsthmus('unpeer', consumer, provider, '--wait')) },
  {
    name: 'taking the namespace back',
    run: async (on) => {
      await untilDone(on, 'unoffload', 'namespace', namespace, ...onKubeconfig(on));
      await on.deleteNamespaces(consumer, namespace);
    },
  },
];

/**
 * SIGKILL. The kubelet starts the first one again at once, and later ones after a growing pause: an agent that was killed before is replaced
 * by a new pod, which leads without waiting for the Lease of the dead one.
 */
async function killAgent(on: Stage, cluster: ClusterName): Promise<void> {
  const selector = ['-n', systemNamespace, '-l', 'app.kubernetes.io/component=controller-manager'];
  const restarts = '-o=jsonpath={.items[*].status.containerStatuses[*].restartCount}';
  const before = await on.kubectl(cluster, ['get', 'pods', ...selector, restarts]);
  for (const pid of on.world.agentPids(cluster)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // it ended while we looked
    }
  }
  if (before.stdout.trim() === '0') return;
  await on.kubectl(cluster, ['delete', 'pods', ...selector, '--force', '--grace-period=0']);
}

interface Killing {
  readonly victims: readonly ClusterName[];
  /** After the step began. */
  readonly afterMs: number;
}

async function take(on: Stage, step: Step, killing?: Killing): Promise<number> {
  const started = performance.now();
  const kill = async (): Promise<void> => {
    if (!killing) return;
    await new Promise((resolve) => setTimeout(resolve, killing.afterMs));
    await Promise.all(killing.victims.map((victim) => killAgent(on, victim)));
  };
  await Promise.all([step.run(on), kill()]);
  return performance.now() - started;
}

async function expectNothingLeft(on: Stage): Promise<void> {
  for (const cluster of clusterNames) {
    await eventually(
      `nothing is left in ${cluster}`,
      async () => {
        const left = await leftovers(on.api(cluster), on.baseline[cluster]);
        if (left.length > 0) throw new Error(left.join('\n'));
        return true;
      },
      settling,
    );
  }
}

/** `lives`: each of them kills once in every step. */
export function killedAgents(on: () => Stage, lives: number): void {
  const random = randomFrom(seed);
  const tookMs = new Map<string, number>();
  const reference = new Map<ClusterName, readonly string[]>();

  describe(`agents killed at any moment (ISTHMUS_SEED=${seed})`, () => {
    afterAll(async () => {
      for (const cluster of clusterNames) {
        await eventually(`an agent runs in ${cluster}`, () => on().world.agentPids(cluster).length > 0, settling);
      }
    });

    test('have a life to compare with: one without any death', async () => {
      for (const step of steps) tookMs.set(step.name, await take(on(), step));
      for (const cluster of clusterNames) reference.set(cluster, await restingState(on(), cluster));
      for (const [cluster, within] of [
        [consumer, namespace],
        [provider, `${namespace}-${consumer}`],
      ] as const) {
        const running =
          reference.get(cluster)?.filter((line) => /^pods (?!liqo-tenant-).* Running .*\bReady=True/.test(line)) ?? [];
        expect(running.map((line) => line.split(' ')[1])).toEqual([`${within}/comes`, `${within}/stays`]);
      }
      for (const step of ending) tookMs.set(step.name, await take(on(), step));
      await expectNothingLeft(on());
    });

    const choose = (step: Step): Killing => {
      const who = random();
      const victims = who < 0.4 ? [consumer] : who < 0.8 ? [provider] : clusterNames;
      return { victims, afterMs: Math.floor(random() * 1.1 * (tookMs.get(step.name) ?? 0)) };
    };
    const takeKilling = async (all: readonly Step[]): Promise<string[]> => {
      const story: string[] = [];
      for (const step of all) {
        const killing = choose(step);
        story.push(`${step.name}: ${killing.victims.join(' and ')} after ${killing.afterMs} ms`);
        console.log(`killed while ${story.at(-1)}`);
        const took = await take(on(), step, killing);
        console.log(`  done after ${(took / 1000).toFixed(1)} s`);
      }
      return story;
    };

    test.each(Array.from({ length: lives }, (_, i) => i + 1))(
      'end where they would have without, life %i',
      async () => {
        const story = await takeKilling(steps);
        for (const cluster of clusterNames) {
          const wanted = reference.get(cluster) ?? [];
          await eventually(
            `${cluster} stands as without deaths (${story.join('; ')})`,
            async () => {
              const seen = await standing(on(), cluster);
              const differing = [
                ...seen.filter((line) => !wanted.includes(line)).map((line) => `has ${line}`),
                ...wanted.filter((line) => !seen.includes(line)).map((line) => `lacks ${line}`),
              ];
              if (differing.length > 0) throw new Error(differing.join('\n'));
              return true;
            },
            settling,
          );
        }
        await takeKilling(ending);
        await expectNothingLeft(on());
      },
    );
  });
}
