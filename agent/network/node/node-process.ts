/** What a node's process does from start to end, whether it is alone in its process or beside the controllers. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { acquireHostMutex } from '#agent/runtime/host-mutex.ts';
import { createProcessFinder } from '#agent/runtime/pod-processes.ts';
import type { Cluster } from '#kube/model/types.ts';
import { gatewayKeys } from '#shared/domain/network-keys.ts';
import type { Registry } from '#shared/metrics/registry.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { detectCni } from '../kernel/cni.ts';
import { readCniEvidence } from '../kernel/cni-evidence.ts';
import { commandsIn } from '../kernel/commands.ts';
import { createPingSocket } from '../link/ping/socket.ts';
import { resolveHost } from '../link/tunnel/candidates.ts';
import type { NodeAgentEnvironment } from './config.ts';
import { createLinkMetrics } from './link-metrics.ts';
import { type NodeAgentDeps, runNodeAgent, sweepNode } from './node-agent.ts';
import { isUninstalling } from './uninstall-state.ts';

export interface NodeProcessDeps {
  /** Its API is still asked after `asked` has aborted. */
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly env: NodeAgentEnvironment;
  readonly registry: Registry;
}

const askMs = 3_000;
const nodeName = 'isthmus-node-process';

/**
 * Programs this node until `asked` aborts, once no other process does. Then there is usually nothing to do: the kernel forwards on, and the
 * Leases of our gateways wait for the next process. Only when the cluster is being left everything of ours is swept from the node.
 */
export async function runNodeProcess(
  { cluster, clock, log, env, registry }: NodeProcessDeps,
  asked: AbortSignal,
): Promise<void> {
  const held = await acquireHostMutex(nodeName, { clock, log }, asked).catch((error: unknown) => {
    if (asked.aborted) return undefined;
    throw error;
  });
  if (held === undefined) return;
  // Not the caller's signal: until it is known whether the cluster is being left, the running parts stay as they are.
  const life = new AbortController();
  let localPods: readonly { readonly uid: string }[] = [];
  const deps: NodeAgentDeps = {
    cluster,
    clock,
    log,
    config: {
      node: env.node,
      cni: detectCni(readCniEvidence(env.cniDirectories)),
      ...(env.fullMasquerade === undefined ? {} : { fullMasquerade: env.fullMasquerade }),
      ...(env.rulePriority === undefined ? {} : { rulePriority: env.rulePriority }),
    },
    processes: createProcessFinder({ holds: path.join(gatewayKeys.mountPath, gatewayKeys.privateKey) }),
    pings: createPingSocket(log),
    resolve: resolveHost,
    commands: commandsIn(undefined),
    metrics: createLinkMetrics(registry),
    resolverTexts: () => env.resolverFiles.flatMap(readIfThere),
    onLocalPods: (pods) => {
      localPods = pods;
    },
  };
  log.info('node process started', { node: env.node, cni: deps.config.cni.name });
  const running = runNodeAgent(deps, life.signal);
  await Promise.race([running, aborted(asked)]).catch((error: unknown) => {
    if (!asked.aborted) throw error;
  });
  const daemonSet = { namespace: env.systemNamespace, name: env.daemonSet };
  if (!(await isUninstalling(cluster.api, daemonSet, AbortSignal.timeout(askMs)))) return log.info('node process ends');
  log.info('the cluster is being left');
  const pods = localPods;
  life.abort(new Error('the cluster is being left'));
  await running.catch(() => undefined);
  await sweepNode(deps, pods);
  await held.release();
}

function readIfThere(file: string): string[] {
  try {
    return [readFileSync(file, 'utf8')];
  } catch {
    return [];
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
