/** What kind of CNI a node has, from what can be seen on it, and what that means for packets to peers. Pure; the runtime looks at the files. */

export interface CniTraits {
  readonly name: 'aws' | 'bridge' | 'calico' | 'cilium' | 'flannel' | 'kindnet' | 'unknown';
  /** Of our source NAT in postrouting: before the CNI's own, so that a connection counts as translated already. */
  readonly snatPriority: number;
  /** Packets from an address come in by the interface by which packets to it leave, so that a forged underlay source is seen. */
  readonly symmetricRoutes: boolean;
  /** Nodes have addresses of the pod range: pods, too, reach peers by the node's address. */
  readonly fullMasquerade: boolean;
  readonly rulePriority: number;
}

export interface CniEvidence {
  /** Contents of /etc/cni/net.d/*.conf and *.conflist, by file name. */
  readonly configurations: Readonly<Record<string, string>>;
  /** Names of DaemonSets in kube-system and in the CNI's own namespaces. */
  readonly daemonSets: readonly string[];
  /** Names of the node's network devices: what is left to go by where the files are elsewhere. */
  readonly devices?: readonly string[];
}

/**
 * Before every masquerade known: kindnet's own nft chain is the earliest (srcnat - 10, table `kindnet-ipmasq`); Flannel's, Calico's and Cilium's
 * iptables or nft rules and kube-proxy's are at srcnat = 100.
 */
const beforeAll = 70;
const usual = { snatPriority: beforeAll, symmetricRoutes: true, fullMasquerade: false, rulePriority: 101 } as const;

const traits: Readonly<Record<CniTraits['name'], CniTraits>> = {
  /** ptp and bridge plugins with `ipMasq`: iptables POSTROUTING per pod, `! -d 224.0.0.0/4 -j MASQUERADE` (containernetworking plugins, pkg/ip/ipmasq). */
  bridge: { name: 'bridge', ...usual },
  /** kindnetd: nft `inet kindnet-ipmasq`, priority srcnat - 10; older ones the iptables chain KIND-MASQ-AGENT, which hides pods from nodes, too. */
  kindnet: { name: 'kindnet', ...usual },
  /** flanneld --ip-masq: chain FLANNEL-POSTRTG or nft `flannel-ipv4` `postrtg`; `! -s NET -d NET` hides what comes from peers, too. */
  flannel: { name: 'flannel', ...usual },
  /** Felix: chain cali-nat-outgoing (`cali40masq-ipam-pools` to anything but `cali40all-ipam-pools`), in iptables or nft `ip calico`. */
  calico: { name: 'calico', ...usual },
  /**
   * The agent: chain CILIUM_POST_nat, or eBPF on the egress of `devices`, which liqo-overlay must not be among. Pods' packets come in by lxc* and
   * leave by cilium_host; eBPF itself refuses a pod a source that is not its own.
   */
  cilium: { name: 'cilium', ...usual, symmetricRoutes: false },
  /** amazon-vpc-cni: pods and nodes share subnets; its rules are at 512 (to pods), 1024, 1536 (from pods) and chain AWS-SNAT-CHAIN-0. */
  aws: { name: 'aws', ...usual, symmetricRoutes: false, fullMasquerade: true },
  unknown: { name: 'unknown', ...usual },
};

/** In this order, since several chain standard plugins: Cilium's and Calico's own come first. */
const plugins: readonly (readonly [RegExp, CniTraits['name']])[] = [
  [/^cilium/, 'cilium'],
  [/^calico/, 'calico'],
  [/^aws-cni$/, 'aws'],
  [/^flannel$/, 'flannel'],
  [/^kindnet$/, 'kindnet'],
  [/^(bridge|ptp)$/, 'bridge'],
];
const daemons: readonly (readonly [RegExp, CniTraits['name']])[] = [
  [/^cilium$/, 'cilium'],
  [/^(calico-node|canal)$/, 'calico'],
  [/^aws-node$/, 'aws'],
  [/^kube-flannel(-ds.*)?$/, 'flannel'],
  [/^kindnet$/, 'kindnet'],
];

/** As the plugins name what they make: Cilium's and Calico's own, those of amazon-vpc-cni's pods, flanneld's, and the bridge of both examples. */
const madeBy: readonly (readonly [RegExp, CniTraits['name']])[] = [
  [/^cilium_(host|net)$/, 'cilium'],
  [/^(cali[0-9a-f]{11}|vxlan\.calico)$/, 'calico'],
  [/^eni[0-9a-f]{11}$/, 'aws'],
  [/^flannel\b/, 'flannel'],
  [/^cni0$/, 'bridge'],
];

/** kindnetd writes a ptp (older: bridge) plugin into `10-kindnet.conflist`; only the name of the network tells. */
export function detectCni({ configurations, daemonSets, devices = [] }: CniEvidence): CniTraits {
  // containerd takes the first file in the order of names
  const first = Object.keys(configurations)
    .filter((file) => /\.(conf|conflist|json)$/.test(file))
    .sort()[0];
  const seen = first === undefined ? [] : pluginTypes(configurations[first] ?? '');
  const byPlugin = plugins.find(([type]) => seen.some((plugin) => type.test(plugin)))?.[1];
  const byDaemon = daemons.find(([pattern]) => daemonSets.some((name) => pattern.test(name)))?.[1];
  if (byPlugin !== undefined && byPlugin !== 'bridge') return traits[byPlugin];
  const byDevice = madeBy.find(([name]) => devices.some((device) => name.test(device)))?.[1];
  return traits[byDaemon ?? byPlugin ?? byDevice ?? 'unknown'];
}

/** Names of the network and of its plugins; none when the file is no JSON. */
function pluginTypes(text: string): string[] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== 'object' || parsed === null) return [];
    const { name, type, plugins: list } = parsed as { name?: unknown; type?: unknown; plugins?: unknown };
    const types = Array.isArray(list) ? list.map((plugin: { type?: unknown } | null) => plugin?.type) : [type];
    return [name, ...types].filter((value) => typeof value === 'string');
  } catch {
    return [];
  }
}

export const unknownCni: CniTraits = traits.unknown;
