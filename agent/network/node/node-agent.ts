/** The node process: programs the node's namespace and those of its gateway pods from what the objects say, and reports what it finds. */
import type { ProcessFinder } from '#agent/runtime/pod-processes.ts';
import type { Cluster } from '#kube/model/types.ts';
import { abortScope, type LinkedAbort, sharedByMany } from '#shared/async/abort-scope.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { CniTraits } from '../kernel/cni.ts';
import type { Commands } from '../kernel/commands.ts';
import type { KernelState } from '../kernel/kernel-state.ts';
import { type Namespace, openNamespace } from '../kernel/namespace.ts';
import { matchesSockets } from '../kernel/socket-match.ts';
import type { PingSocket } from '../link/ping/socket.ts';
import type { Resolve } from '../link/tunnel/candidates.ts';
import { gatewayPodsOn } from '../objects/gateway-facts-of.ts';
import { linksOf } from '../objects/link-objects.ts';
import { nodeModelOf } from '../objects/node-facts-of.ts';
import { comesInCrowds } from '../objects/objects.ts';
import { planNode } from '../plan/node-plan.ts';
import { createBridgePortTable } from './bridge-ports.ts';
import { runGatewayPod } from './gateway-runner.ts';
import type { LinkMetrics } from './link-metrics.ts';
import { createNamespaceReconciler } from './namespace-reconciler.ts';
import { createNeighbourKeeper } from './neighbours.ts';
import { createNodeReporter } from './node-facts.ts';
import { createPathSizes } from './path-sizes.ts';
import { createUserStatus, targetsOf } from './user-status.ts';
import { watchNodeAgentObjects } from './watch.ts';

interface NodeAgentConfig {
  readonly node: string;
  /** What the CNI needs; `fullMasquerade` and `rulePriority` go over what it says. */
  readonly cni: CniTraits;
  readonly fullMasquerade?: boolean;
  readonly rulePriority?: number;
}

export interface NodeAgentDeps {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: NodeAgentConfig;
  readonly processes: ProcessFinder;
  readonly pings: PingSocket;
  readonly resolve: Resolve;
  /** In the node's namespace. */
  readonly commands: Commands;
  /** The resolv.conf files of this node, read now. */
  readonly resolverTexts?: () => readonly string[];
  readonly metrics?: LinkMetrics;
  /** Told whenever other gateway pods may be on this node. */
  readonly onLocalPods?: (pods: readonly { readonly uid: string }[]) => void;
}

/** What a node owns that is not on the overlay: nothing. */
export const nothing: KernelState = {
  neighbours: [],
  routes: [],
  rules: [],
  tables: [],
  sysctls: {},
  refused: [],
};

/** Returns when the signal aborts. The programmed state stays: the kernel goes on forwarding. */
export async function runNodeAgent(deps: NodeAgentDeps, signal: AbortSignal): Promise<void> {
  const { cluster, clock, config, pings } = deps;
  const { node } = config;
  const log = deps.log.with({ node });
  // One listener for each gateway pod here, and a few more.
  sharedByMany(signal);
  const watch = watchNodeAgentObjects(cluster, signal);
  await watch.synced(signal);
  const sizes = createPathSizes();
  const bridgePorts = createBridgePortTable();
  const userStatus = createUserStatus({ cluster, clock, log }, watch.objects);
  const host: Namespace = openNamespace();
  const knowsSockets = await matchesSockets(deps.commands);
  if (!knowsSockets)
    log.info('connections of this node itself end when its conntrack is emptied: the kernel has no nft_socket');
  let targets: readonly string[] = [];
  let overlayAddress: string | undefined;

  function want(): KernelState {
    const model = nodeModelOf(watch.objects(), {
      node,
      cni: config.cni,
      fullMasquerade: config.fullMasquerade ?? config.cni.fullMasquerade,
      rulePriority: config.rulePriority ?? config.cni.rulePriority,
      matchesSockets: knowsSockets,
      sizes: sizes.now(),
      bridgePorts: bridgePorts.now(),
    });
    overlayAddress = model?.overlayAddress;
    targets = model === undefined ? [] : targetsOf(model);
    return model === undefined ? nothing : planNode(model);
  }

  const reconciler = createNamespaceReconciler({
    namespace: host,
    clock,
    log,
    want,
    onPass: ({ failed, error }) => {
      const self = watch.objects().internalNodes.find(({ metadata }) => metadata.name === node);
      if (error !== undefined) {
        if (self !== undefined) cluster.events.emit(self, 'Warning', 'NotProgrammed', (error as Error).message);
        return;
      }
      userStatus.fared(node, targets, failed);
      pings.listenAt(overlayAddress).catch((why) => log.warn('pings are not heard', { why: (why as Error).message }));
    },
  });
  sizes.register(reconciler);
  bridgePorts.serves(reconciler);
  const reporter = createNodeReporter({ ...deps, log }, node, watch.objects, deps.resolverTexts ?? (() => []));
  const neighbours = createNeighbourKeeper({ ...deps, log }, node, watch.objects, signal);
  const runners = createRunners(signal);

  function look(): void {
    reconciler.wake();
    userStatus.look();
    reporter.look();
    neighbours.look();
    const local = gatewayPodsOn(watch.objects(), node);
    watch.needPods(local.length > 0);
    deps.onLocalPods?.(local.map(({ pod }) => pod));
    runners.keep(
      local.map(({ link, pod }) => ({
        key: `${link.name} ${pod.uid}`,
        run: (until) =>
          runGatewayPod(
            { ...deps, log, node, sizes, bridgePorts, userStatus, objects: watch.objects, onChange: watch.onChange },
            link,
            pod,
            until,
          ),
      })),
    );
  }

  const lookSoon = coalesced(clock, look, signal);
  const unsubscribe = watch.onChange((what) => {
    if (!comesInCrowds(what)) return lookSoon();
    // Pods are the gateways' business; of addresses the node masquerades some.
    if (what === 'ips') reconciler.wakeCalmly();
  });
  look();
  log.info('node process runs', { links: linksOf(watch.objects()).length, cni: config.cni.name });
  try {
    await Promise.all([reconciler.run(signal), userStatus.run(signal), reporter.run(signal)]);
  } finally {
    unsubscribe();
    await Promise.all([runners.ended(), neighbours.ended()]);
    pings.close();
    host.close();
  }
}

const burstMs = 10;

/** One call for a burst. */
function coalesced(clock: Clock, work: () => void, signal: AbortSignal): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    clock.sleep(burstMs, signal).then(
      () => {
        waiting = false;
        work();
      },
      () => undefined,
    );
  };
}

interface Runner {
  readonly key: string;
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** Runs what is wanted, each once, and ends what is not wanted any more. */
function createRunners(parent: AbortSignal) {
  const running = new Map<string, { readonly life: LinkedAbort; readonly done: Promise<void> }>();
  let wanted: readonly Runner[] = [];
  function start({ key, run }: Runner): void {
    const life = abortScope(parent);
    const done = run(life.signal).finally(() => {
      life.unlink();
      running.delete(key);
      const again = wanted.find((runner) => runner.key === key);
      if (again !== undefined && !parent.aborted) start(again);
    });
    running.set(key, { life, done });
  }
  return {
    keep(now: readonly Runner[]): void {
      wanted = now;
      for (const [key, { life }] of running) if (!now.some((runner) => runner.key === key)) life.abort();
      for (const runner of now) if (!running.has(runner.key)) start(runner);
    },
    async ended(): Promise<void> {
      await Promise.allSettled([...running.values()].map(({ done }) => done));
    },
  };
}

/** Everything of ours on this node and in its gateway pods goes; for a cluster that is being left. */
export async function sweepNode(
  { processes, log, config }: Pick<NodeAgentDeps, 'processes' | 'log' | 'config'>,
  pods: readonly { readonly uid: string }[],
): Promise<void> {
  const places = [undefined, ...pods.flatMap(({ uid }) => processes.find(uid)?.pid ?? [])];
  for (const pid of places) {
    const namespace = openNamespace(pid === undefined ? {} : { pid });
    try {
      const removed = await namespace.sweep();
      log.info('swept', { node: config.node, removed: removed.length, ...(pid === undefined ? {} : { pid }) });
    } catch (error) {
      log.error('something of ours may be left behind', error);
    } finally {
      namespace.close();
    }
  }
}
