/** A wall in front of the provider's API server that lets no packet of the consumer's nodes pass, and counts them. */
import { consumer, provider, type Stage } from '../whole-clusters/stage.ts';

const table = 'inet door';

export async function closeDoor({ world }: Stage): Promise<void> {
  const callers = world.cluster(consumer).nodes.map(({ ip }) => ip);
  const { port } = new URL(world.cluster(provider).apiServerUrl);
  for (const node of world.cluster(provider).nodes)
    for (const line of [
      `add table ${table}`,
      `add chain ${table} input { type filter hook prerouting priority -350 ; }`,
      `add rule ${table} input ip saddr { ${callers.join(', ')} } tcp dport ${port} counter drop`,
    ])
      await node.exec('nft', [line]);
}

/** Also where there is none. */
export async function openDoor({ world }: Stage): Promise<void> {
  for (const { exec } of world.cluster(provider).nodes)
    for (const line of [`add table ${table}`, `delete table ${table}`]) await exec('nft', [line]);
}

/** Packets so far, at the first node. */
export async function turnedAway({ world }: Stage): Promise<number> {
  const [node] = world.cluster(provider).nodes;
  const text = (await node?.exec('nft', ['list', 'table', ...table.split(' ')])) ?? '';
  const [, packets] = /counter packets (\d+)/.exec(text) ?? [];
  if (packets === undefined) throw new Error(`the wall is not there: ${text}`);
  return Number(packets);
}
