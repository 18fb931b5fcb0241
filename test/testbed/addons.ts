/** What every cluster of the bed runs: its Nodes' records and cluster DNS. Pure: objects with the path they are applied to. */
import { flannelAddons } from './cni/flannel.ts';
import { vpcAddons } from './cni/vpc.ts';
import { coreDnsImage } from './images.ts';
import type { ClusterSpec } from './spec.ts';
import { storageAddons } from './storage-addons.ts';

export interface Applied {
  readonly path: string;
  readonly object: object;
}

const labels = { 'k8s-app': 'kube-dns' };
const account = { name: 'coredns', namespace: 'kube-system' };

const corefile = `.:53 {
  errors
  health {
    lameduck 1s
  }
  ready
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
    ttl 5
  }
  cache 5
  reload
}
`;

/** Made before the kubelet registers, which keeps what it finds: that is how a node gets the range its network was set up with. */
const nodes = ({ nodes: specs }: ClusterSpec): Applied[] =>
  specs.map(({ name, podCidr }) => ({
    path: `/api/v1/nodes/${name}`,
    object: {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' } },
      ...(podCidr === undefined ? {} : { spec: { podCIDR: podCidr, podCIDRs: [podCidr] } }),
    },
  }));

const readAccess = (): Applied[] => [
  {
    path: '/api/v1/namespaces/kube-system/serviceaccounts/coredns',
    object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account },
  },
  {
    path: '/apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns',
    object: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'system:coredns' },
      rules: [
        { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
  },
  {
    path: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:coredns',
    object: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [{ kind: 'ServiceAccount', ...account }],
    },
  },
];

const container = {
  name: 'coredns',
  image: coreDnsImage,
  imagePullPolicy: 'IfNotPresent',
  args: ['-conf', '/etc/coredns/Corefile'],
  ports: [
    { name: 'dns', containerPort: 53, protocol: 'UDP' },
    { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
  ],
  volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
  livenessProbe: { httpGet: { path: '/health', port: 8080 }, initialDelaySeconds: 60 },
  readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
  resources: { requests: { cpu: '10m', memory: '32Mi' } },
};

const deployment = (node: string): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { ...account, labels },
  spec: {
    replicas: 1,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        serviceAccountName: 'coredns',
        priorityClassName: 'system-cluster-critical',
        dnsPolicy: 'Default',
        // Its image is in the first node only.
        nodeSelector: { 'kubernetes.io/hostname': node },
        tolerations: [{ operator: 'Exists' }],
        containers: [container],
        volumes: [{ name: 'config', configMap: { name: 'coredns' } }],
      },
    },
  },
});

const dnsService = (clusterIP: string): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kube-dns', namespace: 'kube-system', labels: { ...labels, 'kubernetes.io/name': 'CoreDNS' } },
  spec: {
    selector: labels,
    clusterIP,
    ports: [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53, protocol: 'TCP' },
    ],
  },
});

function networkAddons(cluster: ClusterSpec): Applied[] {
  if (cluster.cni === undefined) return [];
  return cluster.cni === 'vpc' ? vpcAddons(cluster) : flannelAddons(cluster);
}

/** In the order in which they must be applied. */
export function addonsOf(cluster: ClusterSpec): Applied[] {
  const system = '/api/v1/namespaces/kube-system';
  return [
    ...nodes(cluster),
    ...networkAddons(cluster),
    ...readAccess(),
    {
      path: `${system}/configmaps/coredns`,
      object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: account, data: { Corefile: corefile } },
    },
    { path: `${system}/services/kube-dns`, object: dnsService(cluster.dnsIp) },
    {
      path: '/apis/apps/v1/namespaces/kube-system/deployments/coredns',
      object: deployment(cluster.nodes[0]?.name ?? ''),
    },
    ...(cluster.storage ? storageAddons() : []),
  ];
}
