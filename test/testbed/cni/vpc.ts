/** The Amazon VPC CNI: the DaemonSet aws-node with its own plugin, and with vpcbox in place of the daemon that asks EC2. Pure. */
import type { Applied } from '../addons.ts';
import { inNode, instanceFile } from '../node-config.ts';
import type { ClusterSpec } from '../spec.ts';
import { cniDaemon } from './daemon-set.ts';
import { pluginFolder, usualConfigurations } from './folders.ts';

export const vpcImage = 'isthmus.test/vpc-cni:1';
export const vpcPrograms = '/app';
/** Where its plugin looks for its daemon. */
const runFolder = '/var/run/aws-node';

/** What the CNI's own entrypoint makes of its template; without the plugin for pods of IPv6. */
export const vpcPluginConfiguration = {
  cniVersion: '0.4.0',
  name: 'aws-cni',
  disableCheck: true,
  plugins: [
    {
      name: 'aws-cni',
      type: 'aws-cni',
      vethPrefix: 'eni',
      mtu: '1500',
      podSGEnforcingMode: 'strict',
      pluginLogFile: '/var/log/aws-routed-eni-plugin.log',
      pluginLogLevel: 'INFO',
      capabilities: { 'io.kubernetes.cri.pod-annotations': true },
    },
    { type: 'portmap', capabilities: { portMappings: true }, snat: true },
  ],
};

/** As the cloud's controller writes it; the kubelet leaves it so. */
const addresses = ({ nodes }: Pick<ClusterSpec, 'nodes'>): Applied[] =>
  nodes.flatMap(({ name, ip, vpc }) =>
    vpc === undefined
      ? []
      : [
          {
            path: `/api/v1/nodes/${name}/status`,
            object: {
              apiVersion: 'v1',
              kind: 'Node',
              metadata: { name },
              status: {
                addresses: [
                  { type: 'InternalIP', address: vpc.ip },
                  { type: 'ExternalIP', address: ip },
                  { type: 'Hostname', address: name },
                ],
              },
            },
          },
        ],
  );

export const vpcAddons = (cluster: Pick<ClusterSpec, 'nodes'>): Applied[] => [
  ...addresses(cluster),
  ...cniDaemon({
    namespace: 'kube-system',
    name: 'aws-node',
    account: 'aws-node',
    // Vpcbox asks the API server for nothing.
    rules: [],
    tolerations: [{ operator: 'Exists' }],
    image: vpcImage,
    args: [
      `--instance=/instance/${instanceFile}`,
      `--own=${vpcPrograms}`,
      '--plugins=/host/opt/cni/bin',
      `--configurations=/host${usualConfigurations}`,
    ],
    env: {
      AWS_VPC_ENI_MTU: '1500',
      AWS_VPC_K8S_CNI_EXTERNALSNAT: 'false',
      AWS_VPC_K8S_CNI_LOG_FILE: 'stdout',
      AWS_VPC_K8S_CNI_VETHPREFIX: 'eni',
    },
    mounts: {
      '/instance': inNode.node,
      [runFolder]: runFolder,
      '/host/opt/cni/bin': `${inNode.node}/${pluginFolder}`,
      [`/host${usualConfigurations}`]: usualConfigurations,
    },
  }),
];
