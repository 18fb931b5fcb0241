/**
 * What AWS is around the nodes of a VPC: a router in a network namespace of its own, with an elastic address in the internet for each node, and a fabric
 * that brings each address to the interface it belongs to.
 */
import { readdirSync } from 'node:fs';
import { runCommand } from '#scripts/setup/run-command.ts';
import { macOf } from '../../harness/mac.ts';
import { ipBatch } from '../ip-batch.ts';
import type { ClusterSpec, NodeSpec } from '../spec.ts';
import { type VpcNode, vpcPlan } from './vpc-plan.ts';

const inVpc = (nodes: readonly NodeSpec[]): readonly (NodeSpec & { readonly vpc: VpcNode })[] =>
  nodes.flatMap((node) => (node.vpc === undefined ? [] : [{ ...node, vpc: node.vpc }]));

const prefixOf = (internet: string): string => `${internet}-`;
const routerName = (internet: string, bridge: string): string => prefixOf(internet) + bridge;

/** Each elastic address is a node's, both ways; a node that calls itself by its own comes back as from outside. What has none does not get out. */
export function routerRules({ nodes, podCidr }: Pick<ClusterSpec, 'nodes' | 'podCidr'>): string {
  const pairs = inVpc(nodes);
  const elastic = pairs.map(({ ip, vpc }) => `${ip} : ${vpc.ip}`).join(', ');
  const inside = pairs.map(({ ip, vpc }) => `${vpc.ip} : ${ip}`).join(', ');
  return `table ip vpc {
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    dnat to ip daddr map { ${elastic} }
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname "vpc" oifname "out" ip saddr != { ${pairs.map(({ vpc }) => vpc.ip).join(', ')} } drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    oifname "out" snat to ip saddr map { ${inside} }
    ip saddr ${podCidr} ct status dnat snat to ip saddr map { ${inside} }
  }
}
`;
}

/** Makes the router, and connects the nodes, each by its process 1, with it. `internet`: the namespace of that name, whose link to the router is named as a cluster's bridge is. */
export async function connectVpc(
  internet: string,
  cluster: ClusterSpec,
  pids: ReadonlyMap<string, number>,
): Promise<void> {
  const router = routerName(internet, cluster.bridge);
  const { gateway } = vpcPlan(cluster.podCidr);
  const mac = (of: string): string => macOf(`${router}-${cluster.name} ${of}`);
  await runCommand('ip', ['netns', 'add', router]);
  await ipBatch(
    ['-n', internet],
    [
      `link add ${cluster.bridge} address ${mac('uplink')} type veth peer name out address ${mac('out')} netns ${router}`,
      `addr add ${cluster.gateway}/24 dev ${cluster.bridge}`,
      `link set ${cluster.bridge} up`,
    ],
  );
  const wires = inVpc(cluster.nodes).flatMap((node) =>
    node.vpc.interfaces.flatMap(({ name }) => [
      `link add ${node.link}${name} type veth peer name ${name} address ${mac(`${node.name} ${name}`)} netns ${pids.get(node.name)}`,
      `link set ${node.link}${name} master vpc up`,
    ]),
  );
  await ipBatch(
    ['-n', router],
    [
      'link set lo up',
      ...cluster.nodes.map(({ ip }) => `addr add ${ip}/24 dev out`),
      'link set out up',
      `route add default via ${cluster.gateway}`,
      `link add vpc address ${mac('vpc')} type bridge`,
      `addr add ${gateway}/24 dev vpc`,
      'link set vpc up',
      ...wires,
    ],
  );
  const inRouter = ['netns', 'exec', router];
  await runCommand('ip', [...inRouter, 'nft', '-f', '-'], { input: routerRules(cluster) });
  // Between nodes of a subnet a packet may go by the router, which must not point out the shorter way. Its bridge leaves addresses to the router: a
  // packet with a new one would be bridged, and never back to the node it came from.
  const switches = [
    ['ipv4/ip_forward', 1],
    ['ipv4/conf/all/send_redirects', 0],
    ['ipv4/conf/vpc/send_redirects', 0],
    ['bridge/bridge-nf-call-iptables', 0],
  ].map(([file, value]) => `echo ${value} > /proc/sys/net/${file}`);
  await runCommand('ip', [...inRouter, 'sh', '-ec', switches.join('\n')]);
}

/** Lines for `ip -batch` and settings in /proc/sys of one node. The second interface is the CNI's to set up. */
export function vpcNodeSetUp(
  cluster: Pick<ClusterSpec, 'podCidr'>,
  { ip, interfaces }: VpcNode,
): { readonly lines: readonly string[]; readonly settings: readonly string[] } {
  const { gateway } = vpcPlan(cluster.podCidr);
  return {
    lines: [
      `addr add ${ip}/24 dev eth0`,
      'link set eth0 up',
      `route add default via ${gateway}`,
      // The kernel answers once a pod has the address, and only at the interface to which it belongs.
      ...interfaces.flatMap(({ name, secondary }) =>
        secondary.map((address) => `neigh add proxy ${address} dev ${name}`),
      ),
    ],
    settings: interfaces.flatMap(({ name }) => [
      `net/ipv4/conf/${name}/arp_ignore=1`,
      `net/ipv4/conf/${name}/arp_announce=2`,
      `net/ipv4/neigh/${name}/proxy_delay=0`,
    ]),
  };
}

/** Names of the links in the internet behind which routers stand, that of a half-made cluster included. */
export function vpcRouters(internet: string): string[] {
  const prefix = prefixOf(internet);
  try {
    return readdirSync('/run/netns').flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
  } catch {
    return []; // no namespace was ever made
  }
}

export async function removeVpcRouter(internet: string, bridge: string): Promise<void> {
  if (vpcRouters(internet).includes(bridge)) await runCommand('ip', ['netns', 'del', routerName(internet, bridge)]);
}
