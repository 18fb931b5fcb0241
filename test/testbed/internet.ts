/** The "internet" between clusters: one network namespace with a bridge per cluster, and a leg to the host. */
import { existsSync } from 'node:fs';
import { runCommand } from '#scripts/setup/run-command.ts';
import { macOf } from '../harness/mac.ts';
import { type ClusterSpec, internetAddress, type NodeSpec, slotRange } from './spec.ts';

/** Also the name of the host's interface into it. */
export const internetName = (slot: number): string => `isthmus${slot}`;
/** Where nodes and pods reach programs of the host, such as a broker. */
export const hostAddress = (slot: number): string => internetAddress(slot, 0, 2);

const ipBatch = (args: readonly string[], lines: readonly string[]): Promise<string> =>
  runCommand('ip', [...args, '-batch', '-'], { input: `${lines.join('\n')}\n` });

const namespaceExists = (slot: number): boolean => existsSync(`/run/netns/${internetName(slot)}`);
const hostLegExists = (slot: number): boolean => existsSync(`/sys/class/net/${internetName(slot)}`);

/** Does nothing when it stands. */
export async function makeInternet(slot: number): Promise<void> {
  if (namespaceExists(slot) && hostLegExists(slot)) return;
  await removeInternet(slot);
  const name = internetName(slot);
  await runCommand('ip', ['netns', 'add', name]);
  await ipBatch(
    [],
    [
      `link add ${name} address ${macOf(`${name} leg`)} type veth peer name host address ${macOf(`${name} host`)} netns ${name}`,
      `addr add ${hostAddress(slot)}/24 dev ${name}`,
      `link set ${name} up`,
    ],
  );
  await ipBatch(
    ['-n', name],
    [`addr add ${internetAddress(slot, 0, 1)}/24 dev host`, 'link set host up', 'link set lo up'],
  );
  await runCommand('ip', [
    'route',
    'add',
    slotRange(slot),
    'via',
    internetAddress(slot, 0, 1),
    'src',
    hostAddress(slot),
  ]);
  await runCommand('ip', ['netns', 'exec', name, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward']);
}

export async function removeInternet(slot: number): Promise<void> {
  if (hostLegExists(slot)) await runCommand('ip', ['link', 'del', internetName(slot)]);
  if (namespaceExists(slot)) await runCommand('ip', ['netns', 'del', internetName(slot)]);
}

/**
 * Connects the nodes, each by its process 1, with the internet and with each other. Devices have the same link-layer addresses whenever a cluster
 * of this name comes up in this slot: a neighbour with a cached entry still reaches it.
 */
export async function connectCluster(
  slot: number,
  cluster: ClusterSpec,
  pids: ReadonlyMap<string, number>,
): Promise<void> {
  const outside = ['-n', internetName(slot)];
  const interfaces = cluster.nodes.flatMap((node) => [
    `link add ${node.link} type veth peer name eth0 address ${macOf(`${slot}-${cluster.name}-${node.name} eth0`)} netns ${pids.get(node.name)}`,
    `link set ${node.link} master ${cluster.bridge} up`,
  ]);
  await ipBatch(outside, [
    `link add ${cluster.bridge} address ${macOf(`${slot}-${cluster.name} bridge`)} type bridge`,
    `addr add ${cluster.gateway}/24 dev ${cluster.bridge}`,
    `link set ${cluster.bridge} up`,
    ...interfaces,
  ]);
  await Promise.all(cluster.nodes.map((node) => configureNode(cluster, node, pids.get(node.name) ?? 0)));
}

async function configureNode(cluster: ClusterSpec, node: NodeSpec, pid: number): Promise<void> {
  const others = cluster.nodes.filter(({ name }) => name !== node.name);
  const lines = [
    'link set lo up',
    `addr add ${node.ip}/24 dev eth0`,
    'link set eth0 up',
    `route add default via ${cluster.gateway}`,
    ...others.map((other) => `route add ${other.podCidr} via ${other.ip}`),
  ];
  const enter = ['--target', String(pid), '--net', '--mount'];
  await runCommand('nsenter', [...enter, 'ip', '-batch', '-'], { input: `${lines.join('\n')}\n` });
  // Without bridge-nf, a pod that reaches a pod of the same node through a Service gets the answer from the wrong address.
  const switches = ['ipv4/ip_forward', 'bridge/bridge-nf-call-iptables'].map(
    (name) => `echo 1 > /proc/sys/net/${name}`,
  );
  await runCommand('nsenter', [...enter, 'sh', '-ec', switches.join('\n')]);
}

/** The names of all interfaces that clusters have in the internet. */
export async function clusterLinks(slot: number): Promise<string[]> {
  if (!namespaceExists(slot)) return [];
  const links = JSON.parse((await runCommand('ip', ['-n', internetName(slot), '-json', 'link'])) || '[]') as {
    ifname: string;
  }[];
  return links.map(({ ifname }) => ifname).filter((name) => /^c\d+(n\d+)?$/.test(name));
}

export async function removeLinks(slot: number, names: readonly string[]): Promise<void> {
  const present = new Set(await clusterLinks(slot));
  // The end of a node's namespace removes its wire too, at a moment of the kernel's choice.
  const lines = names.filter((name) => present.has(name)).map((name) => `link del ${name}`);
  if (lines.length > 0) await ipBatch(['-n', internetName(slot), '-force'], lines).catch(() => undefined);
}
