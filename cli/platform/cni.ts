/** Which CNI a cluster has, and those of its settings that matter to packets of peers, by its objects. The node processes look at the files themselves. Pure. */
import type { ClusterFacts, DaemonSetFacts } from './facts.ts';

export interface CniFacts {
  readonly name: string;
  /** Of what in the cluster. */
  readonly because: string;
  /** In the CNI's own words, for people. */
  readonly settings: readonly string[];
  /** What an administrator of such a cluster has to see to. */
  readonly cautions: readonly string[];
}

interface Known {
  readonly name: string;
  readonly daemonSet: RegExp;
  readonly look?: (facts: ClusterFacts, set: DaemonSetFacts) => Partial<Pick<CniFacts, 'settings' | 'cautions'>>;
}

const named = (values: Readonly<Record<string, string | undefined>>, keys: readonly string[]): string[] =>
  keys.flatMap((key) => (values[key] ? [`${key}=${values[key]}`] : []));

const ourDevices = 'liqo.*';

const cilium: Known['look'] = ({ settings }) => {
  const config = settings['kube-system/cilium-config'] ?? {};
  const replaced = ['true', 'strict', 'partial'].includes(config['kube-proxy-replacement'] ?? '');
  return {
    settings: named(config, [
      'routing-mode',
      'tunnel-protocol',
      'kube-proxy-replacement',
      'enable-bpf-masquerade',
      'devices',
      'cluster-pool-ipv4-cidr',
    ]),
    cautions: [
      ...(replaced
        ? [
            'its replacement of kube-proxy translates before nft does: NodePorts and load balancers of this cluster may not lead to offloaded pods; `isthmus network test` shows it',
          ]
        : []),
      ...(config.devices?.split(/[\s,]+/).some((device) => /^(\+|liqo.*)$/.test(device))
        ? [`its \`devices\` is ${config.devices}, which takes in ours (${ourDevices}): name those of the nodes`]
        : []),
    ],
  };
};

const calico: Known['look'] = (_, { env }) => {
  const method = env.IP_AUTODETECTION_METHOD;
  return {
    settings: named(env, ['CALICO_NETWORKING_BACKEND', 'IP_AUTODETECTION_METHOD', 'FELIX_BPFENABLED']),
    cautions:
      method?.startsWith('first-found') || (method === undefined && env.CALICO_NETWORKING_BACKEND === 'bird')
        ? [
            `with BGP its nodes may take an address of ours: \`kubectl -n kube-system set env daemonset/calico-node IP_AUTODETECTION_METHOD=skip-interface=${ourDevices}\` keeps those out`,
          ]
        : [],
  };
};

const flannel: Known['look'] = ({ settings }) => {
  const text = (settings['kube-flannel/kube-flannel-cfg'] ?? settings['kube-system/kube-flannel-cfg'])?.[
    'net-conf.json'
  ];
  const type = /"Type"\s*:\s*"([^"]+)"/.exec(text ?? '')?.[1];
  return { settings: type === undefined ? [] : [`backend ${type}`] };
};

const aws: Known['look'] = (_, { env }) => ({
  settings: named(env, [
    'AWS_VPC_K8S_CNI_EXTERNALSNAT',
    'AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG',
    'ENABLE_PREFIX_DELEGATION',
    'ENABLE_POD_ENI',
  ]),
  cautions:
    env.ENABLE_POD_ENI === 'true'
      ? [
          'pods with security groups of their own leave by a branch interface, past the routes of the node: they do not reach peers',
        ]
      : [],
});

/** In this order: several run beside others, which only enforce policies. */
const known: readonly Known[] = [
  { name: 'Cilium', daemonSet: /^(cilium|anetd)$/, look: cilium },
  { name: 'OVN-Kubernetes', daemonSet: /^ovnkube-node$/ },
  { name: 'Amazon VPC CNI', daemonSet: /^aws-node$/, look: aws },
  { name: 'Calico', daemonSet: /^(calico-node|canal|rke2-canal)$/, look: calico },
  { name: 'Flannel', daemonSet: /^kube-flannel(-ds.*)?$/, look: flannel },
  { name: 'kindnet', daemonSet: /^kindnet$/ },
  { name: 'Azure CNI', daemonSet: /^azure-(cns|cni.*)$/ },
  { name: 'Antrea', daemonSet: /^antrea-agent$/ },
  { name: 'Weave Net', daemonSet: /^weave-net$/ },
  { name: 'kube-router', daemonSet: /^kube-router$/ },
];

/** Undefined: no DaemonSet of a CNI that is known; several distributions start theirs without one. */
export function findCni(facts: ClusterFacts): CniFacts | undefined {
  for (const { name, daemonSet, look } of known) {
    const set = facts.daemonSets.find((one) => daemonSet.test(one.name));
    if (set === undefined) continue;
    const { settings = [], cautions = [] } = look?.(facts, set) ?? {};
    return { name, because: `DaemonSet ${set.namespace}/${set.name}`, settings, cautions };
  }
  return undefined;
}
