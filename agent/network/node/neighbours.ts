/**
 * The kernel keeps the link-layer address of another node for 15 to 45 s without asking again. A machine that was replaced keeps its IP address and
 * has another link-layer address: until then, overlay packets for it would go to a machine that is gone.
 */
import type { Commands } from '#agent/network/kernel/commands.ts';
import { internalAddresses, isVirtual } from '#agent/network/objects/link-objects.ts';
import type { NodeAgentObjects } from '#agent/network/objects/objects.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';

/** Internal IPv4 address of a node to the boot ID of the machine that had it last. */
export type Boots = ReadonlyMap<string, string>;

/** Of all real nodes but this one that have said which boot they are in. */
export function bootsOf(nodes: readonly Node[], self: string): Boots {
  return new Map(
    nodes
      .filter((node) => node.metadata.name !== self && !isVirtual(node))
      .flatMap((node) => {
        const bootId = node.status?.nodeInfo?.bootID;
        return bootId ? internalAddresses(node).map((address) => [address, bootId] as const) : [];
      }),
  );
}

/** Addresses whose machine has booted since, or of which nothing is known. */
export const rebooted = (known: Boots, now: Boots): readonly string[] =>
  [...now].flatMap(([address, bootId]) => (known.get(address) === bootId ? [] : [address])).sort();

export interface NeighbourKeeper {
  /** Objects changed. */
  look(): void;
  /** After what is under way. */
  ended(): Promise<void>;
}

interface NeighbourDeps {
  /** In the node's namespace. */
  readonly commands: Pick<Commands, 'run' | 'file'>;
  readonly clock: Clock;
  readonly log: Log;
}

const retryMs = 1_000;

/**
 * Drops the neighbour entries of nodes that have booted since the last look, on every device. The first look drops those of all nodes: what
 * happened while no process of ours ran is not known, and an entry costs one ARP question. Entries that an administrator made permanent stay.
 */
export function createNeighbourKeeper(
  { commands, clock, log }: NeighbourDeps,
  node: string,
  objects: () => Pick<NodeAgentObjects, 'nodes'>,
  signal: AbortSignal,
): NeighbourKeeper {
  let known: Boots = new Map();
  let turn: Promise<void> = Promise.resolve();

  async function drop(): Promise<void> {
    if (signal.aborted) return;
    const now = bootsOf(objects().nodes, node);
    const addresses = rebooted(known, now);
    if (addresses.length > 0) {
      const lines = addresses.map((address) => `neigh flush to ${address}\n`).join('');
      const batch = await commands.file('neighbours', lines);
      const { code, stderr } = await commands.run('ip', ['-4', '-force', '-batch', batch]);
      if (code !== 0) throw new AppError('command_failed', `ip neigh flush ended with ${code}: ${stderr.trim()}`);
      log.debug('neighbour entries dropped', { addresses });
    }
    known = now;
  }

  async function attempt(): Promise<void> {
    try {
      await drop();
    } catch (error) {
      if (signal.aborted) return;
      log.warn('neighbour entries of nodes that booted were not dropped', {
        code: codeOf(error),
        why: (error as Error).message,
        retryMs,
      });
      clock.sleep(retryMs, signal).then(look, () => undefined);
    }
  }

  function look(): void {
    turn = turn.then(attempt);
  }

  return { look, ended: () => turn };
}
