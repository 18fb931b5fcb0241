/** Removes clusters and everything else that a bed, alive or dead, has left on the machine. */
import { keepUsedRights } from './asked-rights.ts';
import { bedGroup, groupedNodes, groupProcesses, nodeGroup, removeGroups } from './cgroups.ts';
import { clusterDir, removeClusterDir } from './cluster-state.ts';
import { clusterLinks, removeInternet, removeLinks } from './internet.ts';
import { releaseDevices } from './loop-devices.ts';
import { bedProcesses, killAll } from './processes.ts';
import type { ClusterSpec } from './spec.ts';

/** Ends everything in these nodes. The death of a node's process 1 ends its process namespace, mounts and network included. */
async function endNodes(slot: number, nodes: ReadonlySet<string>): Promise<void> {
  if (nodes.size === 0) return;
  await killAll(() => {
    const marked = bedProcesses(slot).filter(({ node }) => nodes.has(node));
    const grouped = [...nodes].flatMap((node) => groupProcesses(nodeGroup(slot, node)));
    return [...new Set([...marked.map(({ pid }) => pid), ...grouped])];
  });
  for (const node of nodes) {
    await releaseDevices(slot, node);
    await removeGroups(nodeGroup(slot, node));
  }
}

export async function removeCluster(slot: number, bedDir: string, spec: ClusterSpec): Promise<void> {
  await endNodes(slot, new Set(spec.nodes.map(({ name }) => name)));
  await removeLinks(slot, [...spec.nodes.map(({ link }) => link), spec.bridge]);
  await keepUsedRights(clusterDir(bedDir, spec.name));
  await removeClusterDir(bedDir, spec.name);
}

/** Removes what belongs to the slot but to none of these clusters; gives back what it found. */
export async function sweep(slot: number, kept: readonly ClusterSpec[]): Promise<string[]> {
  const keptNodes = new Set(kept.flatMap(({ nodes }) => nodes.map(({ name }) => name)));
  const keptLinks = new Set(kept.flatMap(({ bridge, nodes }) => [bridge, ...nodes.map(({ link }) => link)]));
  const seen = [...bedProcesses(slot).map(({ node }) => node), ...groupedNodes(slot)];
  const nodes = new Set(seen.filter((node) => !keptNodes.has(node)));
  await endNodes(slot, nodes);
  const links = (await clusterLinks(slot)).filter((link) => !keptLinks.has(link));
  await removeLinks(slot, links);
  return [...[...nodes].map((node) => `node ${node}`), ...links.map((link) => `interface ${link}`)];
}

/** After the last cluster: the internet and the cgroup. */
export async function removeBed(slot: number): Promise<void> {
  await sweep(slot, []);
  await removeInternet(slot);
  await removeGroups(bedGroup(slot));
}
