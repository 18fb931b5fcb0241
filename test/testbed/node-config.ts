/** Configuration files of one node: container runtime, pod network, kubelet, kube-proxy. Pure; JSON where a program reads YAML. */
import { debianPlugins, pluginFolder, usualConfigurations } from './cni/folders.ts';
import { vpcPlan } from './cni/vpc-plan.ts';
import { type ClusterSpec, isBefore, type NodeSpec, nodeAddress } from './spec.ts';

/** Where a node finds its folders; see nodebox. */
export const inNode = { cluster: '/run/isthmus/cluster', node: '/run/isthmus/node', bin: '/run/isthmus/bin' } as const;
export const containerdSocket = '/run/containerd/containerd.sock';
export const pauseImage = 'isthmus.test/pause:1';

/** `native` copies instead of stacking: for state folders that are on an overlay file system themselves. */
export type Snapshotter = 'overlayfs' | 'native';

/** Where the container runtime looks for plugins and for their configuration. */
const cniFolders = ({ cni }: ClusterSpec): { readonly bin: string; readonly configurations: string } =>
  cni === undefined
    ? { bin: debianPlugins, configurations: `${inNode.node}/cni` }
    : { bin: `${inNode.node}/${pluginFolder}`, configurations: usualConfigurations };

const containerdConfig = (cluster: ClusterSpec, snapshotter: Snapshotter): string => `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "${containerdSocket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  stream_server_address = "127.0.0.1"
  enable_selinux = false
  disable_apparmor = true
  # A machine without CAP_SYS_RESOURCE cannot lower it, and no sandbox would start.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "${snapshotter}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${cniFolders(cluster).bin}"
    conf_dir = "${cniFolders(cluster).configurations}"
`;

const podNetwork = (node: NodeSpec): object => ({
  cniVersion: '0.4.0',
  name: 'testbed',
  plugins: [
    {
      type: 'bridge',
      bridge: 'cni0',
      isGateway: true,
      ipMasq: false,
      hairpinMode: true,
      ipam: { type: 'host-local', ranges: [[{ subnet: node.podCidr }]], routes: [{ dst: '0.0.0.0/0' }] },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
});

const kubeletConfig = (cluster: ClusterSpec, cgroupRoot: string): object => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: true },
    x509: { clientCAFile: `${inNode.cluster}/pki/ca.crt` },
  },
  authorization: { mode: 'Webhook' },
  cgroupDriver: 'cgroupfs',
  cgroupRoot,
  clusterDNS: [cluster.dnsIp],
  clusterDomain: 'cluster.local',
  containerRuntimeEndpoint: `unix://${containerdSocket}`,
  resolvConf: `${inNode.node}/resolv.conf`,
  tlsCertFile: `${inNode.node}/kubelet.crt`,
  tlsPrivateKeyFile: `${inNode.node}/kubelet.key`,
  failSwapOn: false,
  // Kubernetes 1.35 refuses version 1 by default; 1.34 still runs on it, and 1.30 does not know the setting.
  ...(isBefore(cluster, 31) ? {} : { failCgroupV1: false }),
  maxPods: 250,
  kubeAPIQPS: 100,
  kubeAPIBurst: 200,
  eventRecordQPS: 0,
  serializeImagePulls: false,
  // Images are imported, never pulled: collecting one would lose it for good.
  imageGCHighThresholdPercent: 100,
  evictionHard: {
    'memory.available': '100Mi',
    'nodefs.available': '1%',
    'imagefs.available': '1%',
    'nodefs.inodesFree': '1%',
  },
  ...(cluster.restartDelaySeconds === undefined
    ? {}
    : {
        featureGates: { KubeletCrashLoopBackOffMax: true },
        crashLoopBackOff: { maxContainerRestartPeriod: `${cluster.restartDelaySeconds}s` },
      }),
});

const proxyConfig = (cluster: ClusterSpec, node: NodeSpec): object => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'nftables',
  // On by default since 1.31.
  ...(isBefore(cluster, 31) ? { featureGates: { NFTablesProxyMode: true } } : {}),
  clientConnection: { kubeconfig: `${inNode.cluster}/proxy.conf` },
  hostnameOverride: node.name,
  // As on EKS: what comes from a pod is known there by nothing.
  clusterCIDR: cluster.cni === 'vpc' ? '' : cluster.podCidr,
  // Both belong to the whole machine and are not ours to change.
  conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
});

/** Pods reach the outside with their node's address; inside the cluster with their own. */
const bedMasquerade = (cluster: ClusterSpec): string => `table ip testbed {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${cluster.podCidr} ip daddr != ${cluster.podCidr} oifname "eth0" masquerade
  }
}
`;

/** Of a node whose pods leave the cluster by a rule of the bed. */
export const masqueradeFile = 'masquerade.nft';
/** What the metadata service of EC2 would say, for vpcbox. */
export const instanceFile = 'instance.json';

/** Contents by path below the node's folder. */
export function nodeFiles(
  cluster: ClusterSpec,
  node: NodeSpec,
  options: { readonly cgroupRoot: string; readonly snapshotter: Snapshotter },
): Readonly<Record<string, string>> {
  const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;
  return {
    'containerd.toml': containerdConfig(cluster, options.snapshotter),
    'kubelet.yaml': json(kubeletConfig(cluster, options.cgroupRoot)),
    'proxy.yaml': json(proxyConfig(cluster, node)),
    'resolv.conf': '# the internet of the test bed has no name server\n',
    ...(cluster.cni === undefined
      ? { 'cni/10-testbed.conflist': json(podNetwork(node)), [masqueradeFile]: bedMasquerade(cluster) }
      : {}),
    ...(node.vpc === undefined
      ? {}
      : {
          [instanceFile]: json({
            vpc: cluster.podCidr,
            subnet: vpcPlan(cluster.podCidr).subnet,
            interfaces: node.vpc.interfaces,
          }),
        }),
  };
}

export const kubeletArgs = (node: NodeSpec): string[] => [
  'kubelet',
  `--config=${inNode.node}/kubelet.yaml`,
  `--kubeconfig=${inNode.node}/kubelet.conf`,
  `--hostname-override=${node.name}`,
  `--node-ip=${nodeAddress(node)}`,
  // Keeps the addresses that the bed gives the Node, as the cloud's own controller would.
  ...(node.vpc === undefined ? [] : ['--cloud-provider=external']),
  '--v=1',
];

export const proxyArgs: readonly string[] = ['kube-proxy', `--config=${inNode.node}/proxy.yaml`];
