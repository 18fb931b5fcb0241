/** The Kubernetes distributions that need something of their own, how each is recognised by facts in the cluster, and what is known of it. Pure. */
import type { ClusterFacts, NodeFacts } from './facts.ts';
import type { PlatformSettings } from './settings.ts';

export const profileNames = [
  'openshift',
  'eks',
  'aks',
  'gke',
  'talos',
  'rke2',
  'k3s',
  'k0s',
  'microk8s',
  'minikube',
  'kind',
  'kubeadm',
  'generic',
] as const;
export type ProfileName = (typeof profileNames)[number];

export interface Profile {
  readonly name: ProfileName;
  /** As its makers write it. */
  readonly title: string;
  /** Its kubeconfig names loopback, where peers find another machine. */
  readonly loopbackApi?: true;
  /** API servers reach pods by themselves, though they run on no node of the list. */
  readonly tunnelled?: true;
  /** Client certificates are approved and never signed. */
  readonly noClientSigner?: true;
  /** What an installation does by itself. */
  readonly settings?: PlatformSettings;
  /** What an administrator has to know and no fact in the cluster tells. */
  readonly cautions?: readonly string[];
}

/** Where the load balancer of a gateway checks its health. */
const gatewayHealthPort = 8083;
const aws = 'service.beta.kubernetes.io/aws-load-balancer';

const profiles: Readonly<Record<ProfileName, Omit<Profile, 'name'>>> = {
  openshift: {
    title: 'OpenShift',
    settings: { securityContextConstraints: true },
    cautions: [
      'OVN-Kubernetes in shared gateway mode sends packets of pods past the routes of nodes: set routingViaHost with `oc patch network.operator/cluster --type merge -p \'{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"gatewayConfig":{"routingViaHost":true}}}}}\'`',
    ],
  },
  eks: {
    title: 'Amazon EKS',
    tunnelled: true,
    noClientSigner: true,
    settings: {
      fullMasquerade: true,
      gatewayHealthPort,
      gatewayAnnotations: {
        [`${aws}-type`]: 'external',
        [`${aws}-scheme`]: 'internet-facing',
        [`${aws}-nlb-target-type`]: 'ip',
        [`${aws}-healthcheck-protocol`]: 'TCP',
        [`${aws}-healthcheck-port`]: String(gatewayHealthPort),
      },
    },
    cautions: [
      'gateways of type LoadBalancer need the AWS Load Balancer Controller; they are made internet-facing, their nodes must let UDP 51840 and TCP 8083 in',
      'with a CNI that gives pods addresses outside the VPC, the control plane reaches no webhook: keep the VPC CNI',
    ],
  },
  aks: {
    title: 'Azure Kubernetes Service',
    tunnelled: true,
    // Its cloud controllers delete Nodes without a machine, unless they say that they are none of Azure's.
    settings: { virtualNodeLabels: { 'kubernetes.azure.com/managed': 'false' } },
  },
  gke: {
    title: 'Google Kubernetes Engine',
    // Control planes of private clusters reach nodes and pods at 443 and 10250 only.
    settings: { webhookPort: 10_250 },
    cautions: [
      'in a private cluster logs and exec of offloaded pods need a firewall rule: `gcloud compute firewall-rules create isthmus-kubelets --network NETWORK --source-ranges CONTROL_PLANE_CIDR --allow tcp:11250-11349`',
      'with Dataplane V2 (anetd), NodePorts and load balancers of this cluster do not lead to offloaded pods; call them by their Service inside',
    ],
  },
  talos: { title: 'Talos Linux' },
  rke2: { title: 'RKE2', tunnelled: true },
  k3s: { title: 'K3s', loopbackApi: true, tunnelled: true },
  k0s: { title: 'k0s', tunnelled: true },
  microk8s: { title: 'MicroK8s' },
  minikube: { title: 'minikube', loopbackApi: true },
  kind: { title: 'kind', loopbackApi: true },
  kubeadm: { title: 'kubeadm' },
  generic: { title: 'no distribution that needs anything of its own' },
};

export const profileOf = (name: ProfileName): Profile => ({ name, ...profiles[name] });

type Sign = (facts: ClusterFacts) => string | undefined;

const someNode = (facts: ClusterFacts, what: (node: NodeFacts) => string | undefined): string | undefined => {
  for (const node of facts.nodes) {
    const found = what(node);
    if (found !== undefined) return `${found} of node ${node.name}`;
  }
  return undefined;
};
const label =
  (...keys: readonly string[]): Sign =>
  (facts) =>
    someNode(facts, ({ labels }) => {
      const key = keys.find((one) => labels[one] !== undefined);
      return key === undefined ? undefined : `label ${key}`;
    });
const provider =
  (scheme: string): Sign =>
  (facts) =>
    someNode(facts, ({ providerId }) => (providerId.startsWith(`${scheme}://`) ? `provider ${providerId}` : undefined));
const versionWith =
  (mark: RegExp): Sign =>
  ({ version }) =>
    mark.test(version) ? `version ${version}` : undefined;
const group =
  (name: string): Sign =>
  ({ groups }) =>
    groups.includes(name) ? `API group ${name}` : undefined;
const image =
  (mark: RegExp): Sign =>
  (facts) =>
    someNode(facts, ({ osImage }) => (mark.test(osImage) ? `operating system ${osImage}` : undefined));

/** In this order: kind and minikube are made with kubeadm, and several are told by more than one sign. */
const signs: Readonly<Record<Exclude<ProfileName, 'generic'>, readonly Sign[]>> = {
  openshift: [group('config.openshift.io'), group('security.openshift.io')],
  eks: [versionWith(/-eks-/), label('eks.amazonaws.com/nodegroup', 'eks.amazonaws.com/compute-type')],
  aks: [label('kubernetes.azure.com/cluster', 'kubernetes.azure.com/role')],
  gke: [versionWith(/-gke\./), label('cloud.google.com/gke-nodepool')],
  talos: [image(/^Talos /)],
  rke2: [versionWith(/\+rke2/)],
  k3s: [versionWith(/\+k3s/)],
  k0s: [versionWith(/\+k0s/)],
  microk8s: [label('microk8s.io/cluster')],
  minikube: [label('minikube.k8s.io/version', 'minikube.k8s.io/name')],
  kind: [provider('kind')],
  kubeadm: [
    ({ settings }) => (settings['kube-system/kubeadm-config'] ? 'ConfigMap kube-system/kubeadm-config' : undefined),
  ],
};

export interface FoundProfile {
  readonly profile: Profile;
  /** The fact that tells it, for people. */
  readonly because: string;
}

/** `requested`: as a person said it; goes before every fact. */
export function findProfile(facts: ClusterFacts, requested?: ProfileName): FoundProfile {
  if (requested !== undefined) return { profile: profileOf(requested), because: '--profile' };
  for (const name of profileNames) {
    if (name === 'generic') continue;
    for (const sign of signs[name]) {
      const because = sign(facts);
      if (because !== undefined) return { profile: profileOf(name), because };
    }
  }
  return { profile: profileOf('generic'), because: 'no fact in the cluster names another' };
}
