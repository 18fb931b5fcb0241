/** The "internet" between clusters: one network namespace with a bridge per cluster, and a leg to the host. */
import { existsSync } from 'node:fs';
import { runCommand } from '#scripts/setup/run-command.ts';
import { macOf } from '../harness/mac.ts';
import { connectVpc, removeVpcRouter, vpcNodeSetUp, vpcRouters } from './cni/vpc-network.ts';
import { ipBatch } from './ip-batch.ts';
import { type ClusterSpec, internetAddress, type NodeSpec, slotRange } from './spec.ts';

/** Also the name of the host's interface into it. */
export const internetName = (slot: number): string => `isthmus${slot}`;
/** Where nodes and pods reach programs of the host, such as a broker. */
export const hostAddress = (slot: number): string => internetAddress(slot, 0, 2);

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
  if (cluster.cni === 'vpc') await connectVpc(internetName(slot), cluster, pids);
  else await connectByBridge(slot, cluster, pids);
  await Promise.all(cluster.nodes.map((node) => configureNode(cluster, node, pids.get(node.name) ?? 0)));
}

async function connectByBridge(slot: number, cluster: ClusterSpec, pids: ReadonlyMap<string, number>): Promise<void> {
  const interfaces = cluster.nodes.flatMap((node) => [
    `link add ${node.link} type veth peer name eth0 address ${macOf(`${slot}-${cluster.name}-${node.name} eth0`)} netns ${pids.get(node.name)}`,
    `link set ${node.link} master ${cluster.bridge} up`,
  ]);
  await ipBatch(
    ['-n', internetName(slot)],
    [
      `link add ${cluster.bridge} address ${macOf(`${slot}-${cluster.name} bridge`)} type bridge`,
      `addr add ${cluster.gateway}/24 dev ${cluster.bridge}`,
      `link set ${cluster.bridge} up`,
      ...interfaces,
    ],
  );
}

/** Commands and settings of a node's own network. Ways to the pods of other nodes are the bed's only where the CNI makes none. */
function setUpOf(cluster: ClusterSpec, node: NodeSpec): { lines: readonly string[]; settings: readonly string[] } {
  if (node.vpc !== undefined) return vpcNodeSetUp(cluster, node.vpc);
  const others = cluster.cni === undefined ? cluster.nodes.filter(({ name }) => name !== node.name) : [];
  return {
    lines: [
      `addr add ${node.ip}/24 dev eth0`,
      'link set eth0 up',
      `route add default via ${cluster.gateway}`,
      ...others.flatMap(({ podCidr, ip }) => (podCidr === undefined ? [] : [`route add ${podCidr} via ${ip}`])),
    ],
    settings: [],
  };
}

async function configureNode(cluster: ClusterSpec, node: NodeSpec, pid: number): Promise<void> {
  const { lines, settings } = setUpOf(cluster, node);
  const enter = ['--target', String(pid), '--net', '--mount'];
  await runCommand('nsenter', [...enter, 'ip', '-batch', '-'], {
    input: `link set lo up\n${lines.join('\n')}\n`,
  });
  // Without bridge-nf, a pod that reaches a pod of the same node through a Service gets the answer from the wrong address.
  const switches = ['net/ipv4/ip_forward=1', 'net/bridge/bridge-nf-call-iptables=1', ...settings]
    .map((setting) => setting.split('='))
    .map(([file, value]) => `echo ${value} > /proc/sys/${file}`);
  await runCommand('nsenter', [...enter, 'sh', '-ec', switches.join('\n')]);
}

/** The names of all interfaces that clusters have in the internet, with those behind which a router still stands. */
export async function clusterLinks(slot: number): Promise<string[]> {
  const routed = vpcRouters(internetName(slot));
  if (!namespaceExists(slot)) return routed;
  const links = JSON.parse((await runCommand('ip', ['-n', internetName(slot), '-json', 'link'])) || '[]') as {
    ifname: string;
  }[];
  const named = links.map(({ ifname }) => ifname).filter((name) => /^c\d+(n\d+)?$/.test(name));
  return [...new Set([...named, ...routed])];
}

export async function removeLinks(slot: number, names: readonly string[]): Promise<void> {
  for (const name of names) await removeVpcRouter(internetName(slot), name);
  if (!namespaceExists(slot)) return;
  const present = new Set(await clusterLinks(slot));
  // The end of a node's namespace removes its wire too, at a moment of the kernel's choice.
  const lines = names.filter((name) => present.has(name)).map((name) => `link del ${name}`);
  if (lines.length > 0) await ipBatch(['-n', internetName(slot), '-force'], lines).catch(() => undefined);
}
