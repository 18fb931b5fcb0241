/** Where gateway pods of this node are plugged in, as far as that is a port of a bridge. */
import type { Commands } from '../kernel/commands.ts';
import type { NamespaceReconciler } from './namespace-reconciler.ts';

export interface BridgePort {
  readonly bridge: string;
  readonly port: string;
}

/** By the pod's uid; undefined for a pod that is connected in any other way, or does not run. A pod that was not inspected yet is absent. */
export type BridgePorts = ReadonlyMap<string, BridgePort | undefined>;

export interface BridgePortTable {
  now(): BridgePorts;
  /** Registers the reconciler of the node's namespace, which is woken when a port changes. */
  serves(reconciler: Pick<NamespaceReconciler, 'wake'>): void;
  found(podUid: string, port: BridgePort | undefined): void;
  /** The pod is no longer of this node. */
  forget(podUid: string): void;
}

export function createBridgePortTable(): BridgePortTable {
  const bridgePorts = new Map<string, BridgePort | undefined>();
  let reconciler: Pick<NamespaceReconciler, 'wake'> | undefined;
  return {
    now: () => bridgePorts,
    serves(served) {
      reconciler = served;
    },
    found(podUid, port) {
      const before = bridgePorts.get(podUid);
      if (bridgePorts.has(podUid) && before?.bridge === port?.bridge && before?.port === port?.port) return;
      bridgePorts.set(podUid, port);
      reconciler?.wake();
    },
    forget(podUid) {
      if (bridgePorts.delete(podUid)) reconciler?.wake();
    },
  };
}

/** As `ip -json -details` prints them. An address that was not asked for leaves an empty object. */
interface Device {
  readonly ifindex?: number;
  readonly ifname?: string;
  /** Of a veth: its other end, by the numbers of the namespace that is in. */
  readonly link_index?: number;
  readonly master?: string;
  readonly linkinfo?: { readonly info_kind?: string };
}

/** Undefined where the pod with this address is connected in any other way. */
export async function bridgePortOf(
  address: string,
  pod: Pick<Commands, 'run'>,
  node: Pick<Commands, 'run'>,
): Promise<BridgePort | undefined> {
  const inside = (await devices(pod, ['-4', 'address', 'show', 'to', `${address}/32`])).find(
    ({ ifname }) => ifname !== undefined,
  );
  if (inside?.link_index === undefined) return undefined;
  const port = (await devices(node, ['link', 'show', 'type', 'veth'])).find(
    ({ ifindex, link_index }) => ifindex === inside.link_index && link_index === inside.ifindex,
  );
  if (port?.ifname === undefined || port.master === undefined) return undefined;
  const [master] = await devices(node, ['link', 'show', 'dev', port.master]);
  return master?.linkinfo?.info_kind === 'bridge' ? { bridge: port.master, port: port.ifname } : undefined;
}

async function devices({ run }: Pick<Commands, 'run'>, args: readonly string[]): Promise<readonly Device[]> {
  const { code, stdout } = await run('ip', ['-json', '-details', ...args]);
  return code === 0 && stdout !== '' ? (JSON.parse(stdout) as Device[]) : [];
}
