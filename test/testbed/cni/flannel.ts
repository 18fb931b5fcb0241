/** Flannel as its own manifest installs it: a DaemonSet runs flanneld, which takes the range of each Node and writes what its plugin reads. Pure. */
import type { Applied } from '../addons.ts';
import { inNode } from '../node-config.ts';
import type { ClusterSpec, OtherCni } from '../spec.ts';
import { cniDaemon } from './daemon-set.ts';
import { pluginFolder, usualConfigurations } from './folders.ts';

export const flannelImage = 'isthmus.test/flannel:1';
export const flannelPrograms = '/opt/bin';
const namespace = 'kube-flannel';
const settings = 'kube-flannel-cfg';

const backends: Readonly<Partial<Record<OtherCni, object>>> = {
  'flannel-host-gw': { Type: 'host-gw' },
  'flannel-vxlan': { Type: 'vxlan' },
};

const pluginConfiguration = {
  name: 'cbr0',
  cniVersion: '0.3.1',
  plugins: [
    { type: 'flannel', delegate: { hairpinMode: true, isDefaultGateway: true } },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
};

export const flannelAddons = ({ podCidr, cni = 'flannel-vxlan' }: Pick<ClusterSpec, 'podCidr' | 'cni'>): Applied[] => [
  {
    path: `/api/v1/namespaces/${namespace}`,
    object: {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
    },
  },
  {
    path: `/api/v1/namespaces/${namespace}/configmaps/${settings}`,
    object: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: settings, namespace },
      data: {
        'cni-conf.json': JSON.stringify(pluginConfiguration, null, 2),
        'net-conf.json': JSON.stringify({ Network: podCidr, EnableNFTables: false, Backend: backends[cni] }, null, 2),
      },
    },
  },
  ...cniDaemon({
    namespace,
    name: 'kube-flannel-ds',
    account: 'flannel',
    rules: [
      { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
      { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
    ],
    tolerations: [{ operator: 'Exists', effect: 'NoSchedule' }],
    image: flannelImage,
    args: ['--ip-masq', '--kube-subnet-mgr'],
    initContainers: [
      { name: 'install-cni-plugin', command: ['cp', '-f', `${flannelPrograms}/flannel`, '/opt/cni/bin/flannel'] },
      {
        name: 'install-cni',
        command: ['cp', '-f', '/etc/kube-flannel/cni-conf.json', `${usualConfigurations}/10-flannel.conflist`],
      },
    ],
    mounts: {
      '/run/flannel': '/run/flannel',
      '/opt/cni/bin': `${inNode.node}/${pluginFolder}`,
      [usualConfigurations]: usualConfigurations,
    },
    configMaps: { '/etc/kube-flannel': settings },
  }),
];
