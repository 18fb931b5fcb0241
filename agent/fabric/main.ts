/** Composition root of the node process: one per node, for the host's namespace and those of the gateway pods on it. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gatewayKeys } from '#shared/domain/network-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Log } from '#shared/ports/log.ts';
import { type CniTraits, detectCni } from '../host/cni.ts';
import { commandsIn } from '../host/commands.ts';
import { openCluster } from '../kube/cluster.ts';
import { connectInCluster } from '../kube/connect.ts';
import { createPingSocket } from '../ping/socket.ts';
import { systemClock } from '../runtime/clock.ts';
import { resolveHost } from '../tunnel/candidates.ts';
import { type FabricEnvironment, loadFabricEnvironment } from './config.ts';
import { type FabricDeps, runFabric, sweepNode } from './fabric.ts';
import { isLeaving } from './leaving.ts';
import { createLineLog } from './line-log.ts';
import { createProcessFinder } from './processes.ts';

const version = process.env.ISTHMUS_VERSION ?? '0.0.0-dev';
const askMs = 3_000;

async function main(): Promise<void> {
  const [role = 'run'] = process.argv.slice(2);
  if (role === 'version') return console.log(version);
  if (role !== 'run')
    throw new AppError('invalid_input', `the node process has no role ${JSON.stringify(role)}, accepted: run, version`);
  const env = loadFabricEnvironment(process.env);
  const log = createLineLog(env.logLevel, { pod: env.podName });
  const stop = new AbortController();
  const asked = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
  const deps = compose(env, log, stop.signal);
  log.info('node process started', { version, node: env.node, runtime: process.version, cni: deps.config.cni.name });
  const running = runFabric(deps, stop.signal);
  await Promise.race([running, asked]);
  // Usually there is nothing to do: the kernel forwards on, and the Leases of our gateways wait for the next process.
  const daemonSet = { namespace: env.systemNamespace, name: env.daemonSet };
  if (!(await isLeaving(deps.cluster.api, daemonSet, AbortSignal.timeout(askMs)))) return log.info('node process ends');
  log.info('the cluster is being left');
  const pods = deps.localPods();
  stop.abort(new Error('the cluster is being left'));
  await running.catch(() => undefined);
  await sweepNode(deps, pods);
}

interface Composed extends FabricDeps {
  readonly localPods: () => readonly { readonly uid: string }[];
}

function compose(env: FabricEnvironment, log: Log, signal: AbortSignal): Composed {
  const clock = systemClock;
  const connection = connectInCluster({
    clock,
    ...(env.apiHost === undefined ? {} : { host: env.apiHost }),
    ...(env.apiPort === undefined ? {} : { port: env.apiPort }),
    ...(env.serviceAccountDirectory === undefined ? {} : { directory: env.serviceAccountDirectory }),
  });
  const reporting = { reportingController: 'isthmus-fabric', reportingInstance: env.podName };
  let localPods: readonly { readonly uid: string }[] = [];
  return {
    cluster: openCluster(connection, { clock, log }, signal, reporting),
    clock,
    log,
    config: {
      node: env.node,
      cni: cniOf(env.cniDirectory),
      ...(env.fullMasquerade === undefined ? {} : { fullMasquerade: env.fullMasquerade }),
      ...(env.rulePriority === undefined ? {} : { rulePriority: env.rulePriority }),
    },
    processes: createProcessFinder({ holds: path.join(gatewayKeys.mountPath, gatewayKeys.privateKey) }),
    pings: createPingSocket(log),
    resolve: resolveHost,
    commands: commandsIn(undefined),
    onLocalPods: (pods) => {
      localPods = pods;
    },
    localPods: () => localPods,
  };
}

/** As the files of the CNI on this node say; a directory that cannot be read says nothing. */
function cniOf(directory: string): CniTraits {
  const read = (): Record<string, string> =>
    Object.fromEntries(
      readdirSync(directory)
        .filter((name) => /\.(conf|conflist|json)$/.test(name))
        .map((name) => [name, readFileSync(path.join(directory, name), 'utf8')]),
    );
  try {
    return detectCni({ configurations: read(), daemonSets: [] });
  } catch {
    return detectCni({ configurations: {}, daemonSets: [] });
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    createLineLog('info').error('the node process ends', error);
    process.exit(1);
  },
);
