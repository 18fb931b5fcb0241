/**
 * What the agent may do in its own cluster: no more than its controllers need. It hands rights to peers by binding the three remote roles, and
 * to the node process by binding its role in tenant namespaces: by name, which needs no rights of its own inside them.
 */
import type { ClusterRole } from '#shared/domain/core-kinds.ts';

type Rule = NonNullable<ClusterRole['rules']>[number];

const full = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
const read = ['get', 'list', 'watch'];

const rule = (group: string, resources: string[], verbs: string[], resourceNames?: string[]): Rule => ({
  apiGroups: [group],
  resources,
  verbs,
  ...(resourceNames && { resourceNames }),
});

/** `grantable`: names of the ClusterRoles that it may bind. */
export const agentRules = (grantable: readonly string[]): Rule[] => [
  // Its own kinds, status and finalizers included.
  ...[
    'core.liqo.io',
    'authentication.liqo.io',
    'offloading.liqo.io',
    'networking.liqo.io',
    'ipam.liqo.io',
    'isthmus.dev',
  ].map((group) => rule(group, ['*'], full)),
  // Tenant namespaces and mapped namespaces, with what the handshake and offloaded pods need in them.
  rule('', ['namespaces', 'secrets', 'configmaps'], full),
  rule('', ['serviceaccounts'], read),
  // What a PeeringPolicy wants in every namespace of a consumer.
  rule('', ['limitranges', 'resourcequotas'], full),
  rule('networking.k8s.io', ['networkpolicies'], full),
  // Consumer: offloaded pods get tokens of their own accounts; what is said about them at the provider is copied here.
  rule('', ['serviceaccounts/token'], ['create']),
  rule('', ['events'], full),
  rule('networking.k8s.io', ['ingresses'], read),
  // Claims that wait for a volume on a virtual node say so.
  rule('', ['persistentvolumeclaims'], read),
  rule('', ['persistentvolumeclaims/status'], ['patch']),
  // Gateways, and the Services and endpoints by which exposed addresses and reflected Services are reached.
  rule('apps', ['deployments'], full),
  rule('', ['services'], full),
  rule('discovery.k8s.io', ['endpointslices'], full),
  // Consumer: pods bound to virtual nodes get status and are deleted. Provider: shadow pods become pods.
  rule('', ['pods'], full),
  rule('', ['pods/status'], ['get', 'patch', 'update']),
  rule('', ['pods/eviction'], ['create']),
  rule('', ['pods/resize', 'pods/ephemeralcontainers'], ['patch']),
  rule('', ['nodes'], full),
  rule('', ['nodes/status'], ['get', 'patch', 'update']),
  rule('events.k8s.io', ['events'], ['create', 'patch', 'update']),
  rule('coordination.k8s.io', ['leases'], full),
  // Peers: certificates for them, and the bindings that say what those may do.
  rule('rbac.authorization.k8s.io', ['rolebindings', 'clusterrolebindings'], full),
  rule('rbac.authorization.k8s.io', ['clusterroles'], read),
  rule('rbac.authorization.k8s.io', ['clusterroles'], ['bind'], [...grantable]),
  rule('certificates.k8s.io', ['certificatesigningrequests'], full),
  rule('certificates.k8s.io', ['certificatesigningrequests/approval'], ['patch', 'update']),
  rule(
    'certificates.k8s.io',
    ['signers'],
    ['approve'],
    ['kubernetes.io/kube-apiserver-client', 'kubernetes.io/kubelet-serving'],
  ),
  // The kubelet endpoint asks whether its caller may do this.
  rule('authorization.k8s.io', ['subjectaccessreviews'], ['create']),
  rule('authentication.k8s.io', ['tokenreviews'], ['create']),
  // Its own webhooks.
  rule('admissionregistration.k8s.io', ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'], full),
  rule('apiextensions.k8s.io', ['customresourcedefinitions'], read),
];
