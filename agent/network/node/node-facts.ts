/**
 * What only the node itself can find out, for its InternalNode: its addresses towards gateways, whether its kernel has WireGuard, and what it is
 * connected to.
 */
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { abortScope } from '#shared/async/abort-scope.ts';
import { isthmusNetworkAnnotation } from '#shared/domain/network-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { InternalNode } from '#shared/schema/liqo/internal-node.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { Commands } from '../kernel/commands.ts';
import { type GatewayPod, linksOf } from '../objects/link-objects.ts';
import type { NodeAgentObjects } from '../objects/objects.ts';
import { nodeNetworksIn } from './node-networks.ts';

type WireGuardImplementation = 'kernel' | 'userspace';

/** Uses a network namespace of its own, so that a crash leaves nothing behind. */
async function probeWireGuard({ run }: Pick<Commands, 'run'>): Promise<WireGuardImplementation> {
  const { code } = await run('unshare', ['--net', 'ip', 'link', 'add', 'isthmus-probe', 'type', 'wireguard']);
  return code === 0 ? 'kernel' : 'userspace';
}

interface NodeAddresses {
  readonly local?: string;
  readonly remote?: string;
}

/** The source that the kernel would use towards gateway pods, standby ones too: they may be active in a moment. */
async function addressesTowards(
  pods: readonly GatewayPod[],
  node: string,
  { run }: Pick<Commands, 'run'>,
): Promise<NodeAddresses> {
  const towards = async (pod: GatewayPod | undefined): Promise<string | undefined> => {
    if (pod === undefined) return undefined;
    const { code, stdout } = await run('ip', ['-j', 'route', 'get', pod.ip]);
    return code === 0 ? sourceIn(stdout) : undefined;
  };
  const [local, remote] = await Promise.all([
    towards(pods.find((pod) => pod.node === node)),
    towards(pods.find((pod) => pod.node !== node)),
  ]);
  return { ...(local === undefined ? {} : { local }), ...(remote === undefined ? {} : { remote }) };
}

function sourceIn(json: string): string | undefined {
  const [route] = JSON.parse(json || '[]') as { readonly prefsrc?: string }[];
  return route?.prefsrc;
}

/**
 * Writes what differs. What cannot be seen now stays: a gateway pod that went says nothing about addresses. `addresses` undefined: there is no
 * link any more, and with the last one goes what was learned from it.
 */
async function reportNode(
  api: KubeApi,
  known: InternalNode,
  found: {
    readonly addresses: NodeAddresses | undefined;
    readonly wireGuard: WireGuardImplementation;
    readonly nodeNetworks: readonly string[];
  },
  signal: AbortSignal,
): Promise<void> {
  const ref = { name: known.metadata.name };
  const before = known.status?.nodeIP ?? {};
  const after = { ...before, ...found.addresses };
  if (found.addresses === undefined && known.status !== undefined)
    await api.mergePatch(networkKinds.internalNodes, ref, { status: null }, { subresource: 'status' }, signal);
  if (before.local !== after.local || before.remote !== after.remote)
    await api.mergePatch(
      networkKinds.internalNodes,
      ref,
      { status: { nodeIP: after } },
      { subresource: 'status' },
      signal,
    );
  const { wireGuard, nodeNetworks } = isthmusNetworkAnnotation;
  const annotations = { [wireGuard]: found.wireGuard, [nodeNetworks]: found.nodeNetworks.join(',') };
  if (Object.entries(annotations).some(([key, value]) => known.metadata.annotations?.[key] !== value))
    await api.mergePatch(networkKinds.internalNodes, ref, { metadata: { annotations } }, {}, signal);
}

export interface NodeReporter {
  /** Objects changed. */
  look(): void;
  /** Returns when the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

interface ReporterDeps {
  readonly cluster: Pick<Cluster, 'api'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly commands: Commands;
}

/** Addresses change without an object changing: looked at again so often. */
const againMs = 30_000;
const retryMs = 1_000;
const burstMs = 100;

export function createNodeReporter(
  { cluster, clock, log, commands }: ReporterDeps,
  node: string,
  objects: () => NodeAgentObjects,
  resolverTexts: () => readonly string[],
): NodeReporter {
  let dirty = true;
  let wake: (() => void) | undefined;
  return {
    look() {
      dirty = true;
      wake?.();
    },
    async run(signal) {
      const wireGuard = await probeWireGuard(commands);
      log.info('wireguard probed', { wireGuard });
      while (!signal.aborted) {
        dirty = false;
        let pauseMs = againMs;
        try {
          const all = objects();
          const self = all.internalNodes.find(({ metadata }) => metadata.name === node);
          if (self !== undefined) {
            const links = linksOf(all);
            const pods = links.flatMap((link) => link.pods);
            const addresses = links.length === 0 ? undefined : await addressesTowards(pods, node, commands);
            const { code, stdout } = await commands.run('ip', ['-4', '-j', 'route', 'show', 'table', 'main']);
            const nodeNetworks = nodeNetworksIn(code === 0 ? stdout : '', resolverTexts());
            await reportNode(cluster.api, self, { wireGuard, addresses, nodeNetworks }, signal);
          }
        } catch (error) {
          if (!signal.aborted) log.warn('the InternalNode was not written', { code: codeOf(error) });
          pauseMs = retryMs;
        }
        const nap = abortScope(signal);
        wake = () => nap.abort();
        if (!dirty) await clock.sleep(pauseMs, nap.signal).catch(() => undefined);
        wake = undefined;
        nap.unlink();
        // Its own write comes back by the watch; a burst is one look.
        await clock.sleep(burstMs, signal).catch(() => undefined);
      }
    },
  };
}
