/** Looks after one gateway pod of this node from its process' start to its end: programs its namespace and gives it its role. */
import { type PodProcess, type ProcessFinder, untilEnded } from '#agent/runtime/pod-processes.ts';
import { abortScope } from '#shared/async/abort-scope.ts';
import { gatewayKeys } from '#shared/domain/network-keys.ts';
import { type Commands, commandsIn } from '../kernel/commands.ts';
import type { KernelState } from '../kernel/kernel-state.ts';
import { type Namespace, openNamespace } from '../kernel/namespace.ts';
import type { SourcePort } from '../link/tunnel/decide.ts';
import { type GatewayContext, gatewayModelOf } from '../objects/gateway-facts-of.ts';
import { type GatewayPod, type Link, linksOf } from '../objects/link-objects.ts';
import { comesInCrowds } from '../objects/objects.ts';
import { planGateway } from '../plan/gateway-plan.ts';
import { type BridgePortTable, bridgePortOf } from './bridge-ports.ts';
import { createGatewayRoles, type GatewayRolesDeps } from './gateway-roles.ts';
import { createNamespaceReconciler } from './namespace-reconciler.ts';
import { createSourcePort, portInUse } from './source-port.ts';
import { targetsOf, type UserStatus } from './user-status.ts';

export interface GatewayRunnerDeps extends GatewayRolesDeps {
  readonly node: string;
  readonly processes: ProcessFinder;
  readonly userStatus: UserStatus;
  readonly bridgePorts: BridgePortTable;
  /** In the node's namespace. */
  readonly commands: Commands;
}

/** Looking through /proc is not free: a container that does not start is looked for less and less often. */
const findMs = { first: 150, most: 2_000 } as const;

/** Returns when the signal aborts: the pod is no longer of this node. A container that restarts is found again. */
export async function runGatewayPod(
  given: GatewayRunnerDeps,
  link: Link,
  pod: GatewayPod,
  signal: AbortSignal,
): Promise<void> {
  const log = given.log.with({ link: link.name, pod: pod.name });
  const deps = { ...given, log };
  let pauseMs: number = findMs.first;
  deps.metrics?.known(link.remoteClusterId);
  let wasFound = false;
  while (!signal.aborted) {
    const found = deps.processes.find(pod.uid);
    if (found === undefined) {
      deps.bridgePorts.found(pod.uid, undefined);
      await deps.clock.sleep(pauseMs, signal).catch(() => undefined);
      pauseMs = Math.min(findMs.most, pauseMs * 1.2);
      continue;
    }
    pauseMs = findMs.first;
    log.info('gateway process found', { pid: found.pid });
    if (wasFound) deps.metrics?.restarted(link.remoteClusterId);
    wasFound = true;
    const life = abortScope(signal);
    const watching = untilEnded(deps, found, life.signal).finally(() => life.abort());
    const namespace = openNamespace({ pid: found.pid });
    const plugging = plugIn(deps, pod, found.pid);
    try {
      await lookAfter(deps, link, pod, found, namespace, life.signal);
    } catch (error) {
      log.error('a gateway is not looked after', error);
    } finally {
      life.abort();
      await watching;
      await plugging;
      deps.bridgePorts.found(pod.uid, undefined);
      namespace.close();
      life.unlink();
    }
    if (!signal.aborted) log.info('gateway process ended', { pid: found.pid });
  }
  deps.bridgePorts.forget(pod.uid);
}

/** Notes where the pod is plugged in. */
async function plugIn(
  { bridgePorts, commands, log }: GatewayRunnerDeps,
  { ip, uid }: GatewayPod,
  pid: number,
): Promise<void> {
  const inPod = commandsIn(`/proc/${pid}/ns/net`);
  try {
    bridgePorts.found(uid, await bridgePortOf(ip, inPod, commands));
  } catch (error) {
    bridgePorts.found(uid, undefined);
    log.debug('where the gateway is plugged in is not known', { why: (error as Error).message });
  } finally {
    inPod.close();
  }
}

async function lookAfter(
  deps: GatewayRunnerDeps,
  { name: linkName, namespace: tenant, gatewayName, role }: Link,
  pod: GatewayPod,
  found: PodProcess,
  namespace: Namespace,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = deps;
  // wireguard-go is the container's process, or the device is up to us.
  const implementation = found.command === 'wireguard-go' ? 'userspace' : 'kernel';
  const link = (): Link | undefined => linksOf(deps.objects()).find(({ name }) => name === linkName);
  const self = (): GatewayPod | undefined => link()?.pods.find(({ uid }) => uid === pod.uid);
  const tunnel = namespace.tunnel(implementation);
  const isDialled = role === 'server';
  const device = isDialled ? undefined : await tunnel.read().catch(() => undefined);
  const source = createSourcePort(clock, Math.random, device && portInUse(device, clock.now()));
  let waitingFor: string | undefined;
  let planned: KernelState | undefined;
  let programmed = false;
  let targets: readonly string[] = [];

  function want(): KernelState | undefined {
    // Between two looks at the process its number may have been given away.
    if (!deps.processes.isAlive(found)) return undefined;
    const sourcePort = source.now();
    const context: GatewayContext = {
      link: linkName,
      node: deps.node,
      implementation,
      privateKeyFile: `/proc/${found.pid}/root${gatewayKeys.mountPath}/${gatewayKeys.privateKey}`,
      active: self()?.active === true,
      sizes: deps.sizes.now(),
      ...(sourcePort === undefined ? {} : { sourcePort }),
    };
    const outcome = gatewayModelOf(deps.objects(), context);
    const blocked = outcome.ok ? undefined : outcome.waitingFor;
    if (blocked !== undefined && blocked !== waitingFor) log.info('gateway waits', { for: blocked });
    waitingFor = blocked;
    planned = outcome.ok ? planGateway(outcome.model) : undefined;
    if (outcome.ok) targets = targetsOf(outcome.model);
    return planned;
  }

  const reconciler = createNamespaceReconciler({
    namespace,
    clock,
    log,
    want,
    onPass: ({ failed, error }) => {
      if (error !== undefined) return;
      if (planned === undefined) return roles.look();
      programmed = true;
      deps.userStatus.fared(pod.name, targets, failed);
      roles.look();
    },
  });
  const place = {
    ...({ pod, link, self, tunnel, implementation, tenant, gatewayName, role, linkName } as const),
    ...(isDialled
      ? {}
      : { source: { now: source.which, move: (to: SourcePort) => source.move(to, reconciler, signal) } }),
  };
  const roles = createGatewayRoles(deps, { ...place, isReady: () => programmed || waitingFor !== undefined }, signal);
  const unsubscribe = deps.onChange((what) => {
    if (comesInCrowds(what)) return reconciler.wakeCalmly();
    reconciler.wake();
    roles.look();
  });
  const unregister = deps.sizes.register(reconciler);
  try {
    await reconciler.run(signal);
  } finally {
    unsubscribe();
    unregister();
    deps.userStatus.gone(pod.name);
    await roles.ended();
  }
}
