/** Clusters out of network namespaces: nodes with a bridge CNI that masquerades, pods, gateway pods with wireguard-go; programmed by the real plans. */
import type { ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { commandsIn } from '#agent/network/kernel/commands.ts';
import type { WireGuardPeer } from '#agent/network/kernel/kernel-state.ts';
import { type Applied, type Namespace, openNamespace } from '#agent/network/kernel/namespace.ts';
import { controlSocket } from '#agent/network/kernel/wireguard.ts';
import { type BridgePort, bridgePortOf } from '#agent/network/node/bridge-ports.ts';
import type { GatewayModel, View } from '#agent/network/plan/gateway-model.ts';
import { planGateway } from '#agent/network/plan/gateway-plan.ts';
import type { NodeModel } from '#agent/network/plan/node-model.ts';
import { planNode } from '#agent/network/plan/node-plan.ts';
import { wireGuardGoMemory } from '#cli/install/gateway-templates.ts';
import { buildWireGuardGo } from '#scripts/setup/wireguard-go.ts';
import { eventually } from './eventually.ts';
import { macOf } from './mac.ts';
import { connect, type Netns, type NetnsFixture } from './netns.ts';

export const nodePort = 31_820;
const tunnelPort = 51_840;
const mtu = 1340;
/** Comment of the rule by which the CNI would hide pods from peers. */
export const masqueradeRule = 'cni-masquerade';

export interface TestPod {
  readonly netns: Netns;
  readonly ip: string;
  readonly node: TestNode;
}

export interface TestNode {
  readonly netns: Netns;
  readonly name: string;
  readonly ip: string;
  /** Of the bridge: what pods of this node see as its source. */
  readonly bridgeIp: string;
  readonly podCidr: string;
  readonly overlayAddress: string;
  readonly host: Namespace;
}

/** Our end of a link. */
export interface LinkEnd {
  readonly name: string;
  readonly role: 'server' | 'client';
  readonly pod: TestPod;
  readonly overlayAddress: string;
  readonly vni: number;
  readonly pods: View;
  readonly external: View;
  readonly host: Namespace;
  readonly privateKeyFile: string;
  readonly publicKey: string;
  readonly plug: BridgePort | undefined;
  wireguard: ChildProcess;
  peer?: WireGuardPeer;
}

export function wireGuardKeys(): { readonly privateKey: Buffer; readonly publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  const bytes = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64url');
  return {
    privateKey: bytes(privateKey.export({ format: 'jwk' }).d),
    publicKey: bytes(publicKey.export({ format: 'jwk' }).x).toString('base64'),
  };
}

export interface Octets {
  readonly pods: number;
  readonly external: number;
}
const sameOctets: Octets = { pods: 200, external: 70 };

export class TestCluster {
  readonly name: string;
  readonly index: number;
  readonly nodes: TestNode[] = [];
  readonly pods: TestPod[] = [];
  readonly links: LinkEnd[] = [];
  /** From IP objects; nodes' own addresses are added by the models. */
  exposed: { ip: string; exposed: string }[] = [];
  hosts: string[] = [];
  masqueradedHosts: { host: string; exposed: string }[] = [];
  /** Node ports that its nodes know to be gateways'. */
  entrances: number[] = [];
  strayPods: { ip: string; node: string }[] = [];
  /** Second octets of its own ranges. */
  readonly #octets: Octets;
  readonly #world: NetnsFixture;
  readonly #net: Netns;

  constructor(clusters: NetnsFixture, net: Netns, name: string, index: number, octets: Octets = sameOctets) {
    this.#world = clusters;
    this.#net = net;
    this.name = name;
    this.index = index;
    this.#octets = octets;
  }

  get podCidr(): string {
    return `10.${this.#octets.pods}.0.0/16`;
  }

  get external(): string {
    return `10.${this.#octets.external}.0.0/16`;
  }

  async addNode(): Promise<TestNode> {
    const number = this.nodes.length + 1;
    const prefix = `10.${this.#octets.pods}.${number}`;
    const place = { name: `node${number}`, ip: `172.30.${this.index}.${number}`, bridgeIp: `${prefix}.1` };
    const wired = await this.#wire(place);
    for (const other of this.nodes) await other.netns.ip([`route add ${prefix}.0/24 via ${place.ip}`]);
    const node = { ...place, ...wired, podCidr: `${prefix}.0/24`, overlayAddress: `10.80.0.${number}` };
    this.nodes.push(node);
    return node;
  }

  /**
   * Node and pods are gone, and come again with nothing but what they have at their start: a machine keeps its link-layer address, another one
   * that takes its place has `mac`. What runs in them is up to the caller.
   */
  async rebootNode(node: TestNode, whileDown: () => Promise<void>, mac?: string): Promise<void> {
    const pods = this.pods.filter((pod) => pod.node === node);
    node.host.close();
    for (const { netns } of [...pods, node]) await this.#world.remove(netns);
    await whileDown();
    Object.assign(node, await this.#wire(node, mac));
    for (const pod of pods) Object.assign(pod, { netns: await this.#plug(node, pod.ip) });
  }

  async #wire(
    { name, ip, bridgeIp }: Pick<TestNode, 'name' | 'ip' | 'bridgeIp'>,
    mac = macOf(`${this.name}-${name} eth0`),
  ) {
    const netns = await this.#world.add(`${this.name}-${name}`);
    const cable = `v${this.index}-${name.replace('node', '')}`;
    const others = this.nodes.filter((node) => node.name !== name);
    // The cable of its former life goes when the kernel gets round to it.
    const isFree = async () => (await this.#net.tryExec('ip', 'link', 'show', cable)).code !== 0;
    await eventually(`${cable} is free`, isFree, { everyMs: 20 });
    await connect({ netns, device: 'eth0', mac }, { netns: this.#net, device: cable });
    await this.#net.ip([`link set dev ${cable} master under`]);
    await netns.ip([
      `address add ${ip}/16 dev eth0`,
      // A bridge without an address of its own changes it with its ports, unheard by the pods that know it.
      `link add name cni0 address ${macOf(`${this.name}-${name} cni0`)} type bridge`,
      `address add ${bridgeIp}/24 dev cni0`,
      'link set dev cni0 up',
      ...others.map((node) => `route add ${node.podCidr} via ${node.ip}`),
      'route add default via 172.30.255.254',
    ]);
    await netns.sysctl({ 'net.ipv4.ip_forward': 1 });
    await netns.nft(`table ip cni {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${this.podCidr} ip daddr ${this.podCidr} accept
    ip saddr ${this.podCidr} ip daddr 10.0.0.0/8 counter masquerade comment "${masqueradeRule}"
    ip saddr ${this.podCidr} masquerade
  }
}`);
    return { netns, host: openNamespace({ pid: netns.pid }) };
  }

  async addPod(node: TestNode, host: number): Promise<TestPod> {
    const ip = node.bridgeIp.replace(/\.1$/, `.${host}`);
    const pod = { netns: await this.#plug(node, ip), ip, node };
    this.pods.push(pod);
    return pod;
  }

  async #plug(node: TestNode, ip: string): Promise<Netns> {
    const host = ip.slice(ip.lastIndexOf('.') + 1);
    const netns = await this.#world.add(`${this.name}-${node.name}-pod${host}`);
    const mac = macOf(`${this.name}-${node.name}-pod${host} eth0`);
    await connect({ netns: node.netns, device: `pod${host}` }, { netns, device: 'eth0', mac });
    await node.netns.ip([`link set dev pod${host} master cni0`]);
    await netns.ip([`address add ${ip}/24 dev eth0`, `route add default via ${node.bridgeIp}`]);
    return netns;
  }

  /** A gateway pod with wireguard-go; `view`: how we see the peer. */
  async addLink(
    name: string,
    node: TestNode,
    role: LinkEnd['role'],
    other: TestCluster,
    view: Octets,
  ): Promise<LinkEnd> {
    const number = this.links.length + 1;
    const pod = await this.addPod(node, 100 + 10 * this.index + number);
    const { privateKey, publicKey } = wireGuardKeys();
    const end: LinkEnd = {
      name,
      role,
      pod,
      overlayAddress: `10.80.1.${number}`,
      vni: 0x10_00_00 * (this.index + 1) + number,
      pods: { real: other.podCidr, view: `10.${view.pods}.0.0/16` },
      external: { real: other.external, view: `10.${view.external}.0.0/16` },
      host: openNamespace({ pid: pod.netns.pid }),
      privateKeyFile: this.#world.file(privateKey, `${this.name}-${name}.key`),
      publicKey,
      plug: await plugOf(pod),
      wireguard: await startWireGuard(pod.netns),
    };
    this.links.push(end);
    return end;
  }

  /** What kube-proxy does for the gateway's Service of type NodePort, on every node. */
  async exposeNodePort(end: LinkEnd): Promise<void> {
    for (const { netns } of this.nodes) {
      await netns.nft(`table ip nodeport {
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    fib daddr type local udp dport ${nodePort} dnat to ${end.pod.ip}:${tunnelPort}
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip daddr ${end.pod.ip} udp dport ${tunnelPort} masquerade
  }
}`);
    }
  }

  nodeModel(node: TestNode): NodeModel {
    return {
      node: node.name,
      podCidrs: [this.podCidr],
      overlayAddress: node.overlayAddress,
      links: this.links.map((end) => ({
        name: end.name,
        remoteCidrs: [end.pods.view, end.external.view],
        mtu,
        gateway: { overlayAddress: end.overlayAddress, underlayAddress: end.pod.ip },
        replicaAddresses: [end.pod.ip],
        vni: end.vni,
      })),
      entrances: this.entrances,
      shortCuts: this.links.flatMap(({ pod, plug }) =>
        pod.node === node && plug !== undefined ? [{ to: pod.ip, ...plug }] : [],
      ),
      gatewayNodeAddresses: [],
      masqueradedHosts: this.masqueradedHosts,
      fullMasquerade: false,
      rulePriority: 101,
      matchesSockets: true,
      firewalls: [],
      routes: [],
    };
  }

  /** Address in our external range by which peers see the node. */
  readonly nodeExposed = (node: TestNode): string =>
    node.overlayAddress.replace('10.80.0.', `10.${this.#octets.external}.1.`);

  gatewayModel(end: LinkEnd): GatewayModel {
    return {
      link: end.name,
      role: end.role,
      mtu,
      local: { pods: [this.podCidr], external: this.external },
      remote: { pods: [end.pods], external: [end.external] },
      overlay: { address: end.overlayAddress, vni: end.vni },
      nodes: this.nodes.map((node) => ({
        name: node.name,
        overlayAddress: node.overlayAddress,
        underlayAddress: node === end.pod.node ? node.bridgeIp : node.ip,
        sources: [node.ip, node.bridgeIp],
        podCidrs: [node.podCidr],
        own: node === end.pod.node,
      })),
      strayPods: this.strayPods,
      exposed: [
        ...this.nodes.map((node) => ({ ip: node.overlayAddress, exposed: this.nodeExposed(node) })),
        ...this.exposed,
      ],
      hosts: this.hosts.map((ip) => ({ ip })),
      siblings: this.links
        .filter((other) => other !== end)
        .map((other) => ({
          link: other.name,
          remoteCidrs: [other.pods.view, other.external.view],
          overlayAddress: other.overlayAddress,
          underlayAddresses: [other.pod.ip],
          vni: other.vni,
        })),
      wireGuard: {
        implementation: 'userspace',
        listenPort: tunnelPort,
        privateKeyFile: end.privateKeyFile,
        ...(end.peer === undefined ? {} : { peer: end.peer }),
      },
      firewalls: [],
      routes: [],
    };
  }

  /** Nodes first, then gateways; what was written, by namespace. */
  async program(): Promise<ReadonlyMap<string, Applied>> {
    const applied = await Promise.all([
      ...this.nodes.map(async (node) => [node.name, await node.host.apply(planNode(this.nodeModel(node)))] as const),
      ...this.links.map(async (end) => [end.name, await end.host.apply(planGateway(this.gatewayModel(end)))] as const),
    ]);
    return new Map(applied);
  }

  async close(): Promise<void> {
    await Promise.all([...this.nodes, ...this.links].map(({ host }) => host.close()));
  }
}

/** As the node process finds it. */
async function plugOf({ ip, netns, node }: TestPod): Promise<BridgePort | undefined> {
  const places = [commandsIn(`/proc/${netns.pid}/ns/net`), commandsIn(`/proc/${node.netns.pid}/ns/net`)] as const;
  const plug = await bridgePortOf(ip, ...places);
  for (const place of places) place.close();
  return plug;
}

let wireGuardGo: Promise<string> | undefined;

export async function startWireGuard(netns: Netns): Promise<ChildProcess> {
  wireGuardGo ??= buildWireGuardGo();
  const { name, value } = wireGuardGoMemory;
  const child = netns.start('env', `${name}=${value}`, await wireGuardGo, '-f', 'liqo-tunnel');
  const socket = await controlSocket(netns.pid, 'liqo-tunnel');
  await eventually('wireguard-go listens', () => existsSync(socket), { everyMs: 10 });
  return child;
}

/** The switch between all nodes, and what the default routes lead to. */
export async function openUnderlay(clusters: NetnsFixture): Promise<Netns> {
  const net = await clusters.add('underlay');
  await net.ip([
    `link add name under address ${macOf('underlay')} type bridge`,
    'address add 172.30.255.254/16 dev under',
    'link set dev under up',
  ]);
  return net;
}

/** Client dials a node of the server's cluster; the server waits. */
export function peer(server: LinkEnd, client: LinkEnd, endpoint: string): void {
  server.peer = { publicKey: client.publicKey };
  client.peer = { publicKey: server.publicKey, endpoint, keepaliveSeconds: 1 };
}
