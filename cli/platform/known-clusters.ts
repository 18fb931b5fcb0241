/**
 * A cluster of each distribution, as its objects tell it: for tests. Written by the rules that each distribution documents, not recorded:
 * `docs/platforms.md` says which ones were seen for real.
 */
import type { ClusterFacts, NodeFacts } from './facts.ts';
import type { ProfileName } from './profiles.ts';

type Node = Partial<NodeFacts>;

export const nodeFacts = (some: Node = {}): NodeFacts => ({
  name: 'n1',
  labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' },
  providerId: '',
  os: 'linux',
  arch: 'amd64',
  kernel: '6.1.0-31-amd64',
  osImage: 'Debian GNU/Linux 12 (bookworm)',
  addresses: [{ type: 'InternalIP', address: '10.0.0.4' }],
  ...some,
});

export const clusterFacts = (some: Partial<ClusterFacts> = {}): ClusterFacts => ({
  version: 'v1.34.4',
  groups: ['apps', 'networking.k8s.io'],
  nodes: [nodeFacts()],
  daemonSets: [],
  settings: {},
  balanced: [],
  apiEndpoints: ['10.0.0.4:6443'],
  ...some,
});

const one = (node: Node): Pick<ClusterFacts, 'nodes'> => ({ nodes: [nodeFacts(node)] });
const daemons = (...names: readonly string[]): Pick<ClusterFacts, 'daemonSets'> => ({
  daemonSets: names.map((name) => ({ namespace: 'kube-system', name, env: {} })),
});
const kubeadmConfig = {
  settings: { 'kube-system/kubeadm-config': { ClusterConfiguration: 'kind: ClusterConfiguration' } },
};
const elsewhere = { apiEndpoints: ['172.16.0.2:443'] };

export const knownClusters: Readonly<Record<ProfileName, ClusterFacts>> = {
  kubeadm: clusterFacts({ ...kubeadmConfig, ...daemons('kube-flannel-ds', 'kube-proxy') }),
  kind: clusterFacts({
    ...kubeadmConfig,
    ...one({
      name: 'kind-control-plane',
      providerId: 'kind://docker/kind/kind-control-plane',
      addresses: [{ type: 'InternalIP', address: '172.18.0.2' }],
    }),
    ...daemons('kindnet', 'kube-proxy'),
    apiEndpoints: ['172.18.0.2:6443'],
  }),
  minikube: clusterFacts({
    ...kubeadmConfig,
    ...one({
      name: 'minikube',
      labels: { 'minikube.k8s.io/name': 'minikube', 'minikube.k8s.io/version': 'v1.37.0' },
      addresses: [{ type: 'InternalIP', address: '192.168.49.2' }],
    }),
    ...daemons('kindnet', 'kube-proxy'),
    apiEndpoints: ['192.168.49.2:8443'],
  }),
  microk8s: clusterFacts({
    ...one({
      labels: { 'microk8s.io/cluster': 'true', 'node.kubernetes.io/microk8s-controlplane': 'microk8s-controlplane' },
    }),
    ...daemons('calico-node'),
    apiEndpoints: ['10.0.0.4:16443'],
  }),
  k3s: clusterFacts({
    version: 'v1.34.1+k3s1',
    groups: ['apps', 'helm.cattle.io', 'k3s.cattle.io'],
    ...one({ providerId: 'k3s://n1' }),
  }),
  rke2: clusterFacts({
    version: 'v1.33.5+rke2r1',
    groups: ['apps', 'helm.cattle.io', 'k3s.cattle.io'],
    ...one({ providerId: 'rke2://n1' }),
    ...daemons('rke2-canal'),
  }),
  k0s: clusterFacts({
    version: 'v1.34.1+k0s',
    ...daemons('kube-router', 'konnectivity-agent'),
    apiEndpoints: ['10.0.0.2:6443'],
  }),
  talos: clusterFacts({
    ...one({ osImage: 'Talos (v1.11.2)', kernel: '6.12.48-talos' }),
    ...daemons('kube-flannel', 'kube-proxy'),
  }),
  eks: clusterFacts({
    version: 'v1.33.4-eks-99d6cc0',
    groups: ['apps', 'crd.k8s.amazonaws.com', 'vpcresources.k8s.aws'],
    ...one({
      name: 'ip-192-168-12-34.eu-west-1.compute.internal',
      providerId: 'aws:///eu-west-1a/i-0123456789abcdef0',
      labels: { 'eks.amazonaws.com/nodegroup': 'main', 'topology.kubernetes.io/region': 'eu-west-1' },
      kernel: '6.12.40-64.114.amzn2023.x86_64',
      osImage: 'Amazon Linux 2023.8.20250818',
      addresses: [{ type: 'InternalIP', address: '192.168.12.34' }],
    }),
    ...daemons('aws-node', 'kube-proxy'),
    ...elsewhere,
  }),
  aks: clusterFacts({
    ...one({
      name: 'aks-nodepool1-12345678-vmss000000',
      providerId:
        'azure:///subscriptions/s/resourceGroups/mc_g/providers/Microsoft.Compute/virtualMachineScaleSets/aks-nodepool1-12345678-vmss/virtualMachines/0',
      labels: { 'kubernetes.azure.com/cluster': 'MC_g_c_westeurope', 'kubernetes.azure.com/role': 'agent' },
      kernel: '5.15.0-1092-azure',
      osImage: 'Ubuntu 22.04.5 LTS',
      addresses: [{ type: 'InternalIP', address: '10.224.0.4' }],
    }),
    ...daemons('azure-cns', 'kube-proxy', 'cloud-node-manager'),
    ...elsewhere,
  }),
  gke: clusterFacts({
    version: 'v1.33.5-gke.1080000',
    groups: ['apps', 'networking.gke.io'],
    ...one({
      name: 'gke-c-default-pool-1a2b3c4d-x1y2',
      providerId: 'gce://project/europe-west1-b/gke-c-default-pool-1a2b3c4d-x1y2',
      labels: { 'cloud.google.com/gke-nodepool': 'default-pool' },
      osImage: 'Container-Optimized OS from Google',
      kernel: '6.6.97+',
      addresses: [{ type: 'InternalIP', address: '10.132.0.5' }],
    }),
    ...daemons('anetd', 'netd'),
    ...elsewhere,
  }),
  openshift: clusterFacts({
    version: 'v1.32.8',
    groups: ['apps', 'config.openshift.io', 'operator.openshift.io', 'security.openshift.io'],
    ...one({
      osImage: 'Red Hat Enterprise Linux CoreOS 9.6.20250826-1 (Plow)',
      kernel: '5.14.0-570.37.1.el9_6.x86_64',
      labels: { 'node.openshift.io/os_id': 'rhel' },
    }),
    daemonSets: [{ namespace: 'openshift-ovn-kubernetes', name: 'ovnkube-node', env: {} }],
  }),
  generic: clusterFacts(),
};
