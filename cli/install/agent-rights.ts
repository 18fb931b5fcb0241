/**
 * What the agent may do in its own cluster: no more than its controllers need (docs/security.md says why of each). It hands rights to peers by
 * binding the three remote roles, to the node process by binding its role in tenant namespaces, and to itself by binding three more in the
 * namespaces where it works: by name, so that it cannot widen what they allow.
 */
import { type AgentRole, agentRole } from '#shared/domain/agent-roles.ts';
import type { ClusterRole } from '#shared/domain/core-kinds.ts';
import { admission } from '#shared/domain/liqo-keys.ts';

type Rule = NonNullable<ClusterRole['rules']>[number];

const full = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
const read = ['get', 'list', 'watch'];

const rule = (group: string, resources: string[], verbs: string[], resourceNames?: string[]): Rule => ({
  apiGroups: [group],
  resources,
  verbs,
  ...(resourceNames && { resourceNames }),
});

const ourGroups = [
  'core.liqo.io',
  'authentication.liqo.io',
  'offloading.liqo.io',
  'networking.liqo.io',
  'ipam.liqo.io',
  'isthmus.dev',
] as const;
const webhooks = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];

/** In the whole cluster. `grantable`: names of the ClusterRoles that it may bind. */
export const agentRules = (grantable: readonly string[]): Rule[] => [
  // Its own kinds, status and finalizers included.
  ...ourGroups.map((group) => rule(group, ['*'], full)),
  // Tenant namespaces and mapped namespaces are made and removed here.
  rule('', ['namespaces'], full),
  // Nonces, certificates, kubeconfigs and keys of links stand in tenant namespaces, which come and go with their finalizers.
  rule('', ['secrets'], full),
  // What a PeeringPolicy wants in every namespace of a consumer; all three only ever restrict.
  rule('', ['limitranges', 'resourcequotas'], full),
  rule('networking.k8s.io', ['networkpolicies'], full),
  // What is said about offloaded pods at the provider is copied here.
  rule('', ['events'], full),
  rule('events.k8s.io', ['events'], ['create', 'patch', 'update']),
  // Claims of a virtual class get volumes, wherever they stand; real claims are made in a namespace of their own only. Claims of guests go once
  // their data is kept: the volume stays and says whose it is. Which classes are offered.
  rule('', ['persistentvolumeclaims'], [...read, 'patch']),
  rule('', ['persistentvolumes'], ['create', 'delete', 'get', 'list', 'patch', 'watch']),
  rule('storage.k8s.io', ['storageclasses'], read),
  rule('', ['persistentvolumeclaims/status'], ['patch']),
  // Services and endpoints by which exposed addresses and reflected Services are reached, wherever an IP object stands.
  rule('apps', ['deployments'], read),
  rule('', ['services'], full),
  rule('discovery.k8s.io', ['endpointslices'], full),
  // A virtual kubelet, as every kubelet: pods bound to its node, in any namespace, get status and are deleted; its Node is kept.
  rule('', ['pods'], ['delete', 'get', 'list', 'patch', 'watch']),
  rule('', ['pods/status'], ['get', 'patch', 'update']),
  rule('', ['pods/eviction'], ['create']),
  rule('', ['nodes'], full),
  rule('', ['nodes/status'], ['get', 'patch', 'update']),
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
  // Its own webhooks, and no other's.
  rule('admissionregistration.k8s.io', webhooks, ['create', 'list', 'watch']),
  rule('admissionregistration.k8s.io', webhooks, ['delete', 'get', 'patch', 'update'], [admission.configuration]),
  rule('apiextensions.k8s.io', ['customresourcedefinitions'], read),
];

/** In namespaces where it works: by RoleBindings that it makes when they appear. */
export const namespaceRules: Readonly<Record<AgentRole, Rule[]>> = {
  [agentRole.tenant]: [
    rule('apps', ['deployments'], full),
    // Where this cluster gives tokens in place of certificates: the accounts of a consumer, and tokens of them.
    rule('', ['serviceaccounts'], ['create', 'patch']),
    rule('', ['serviceaccounts/token'], ['create']),
    // Where it does the work of a node as well: which replica of a gateway is active.
    rule('coordination.k8s.io', ['leases'], full),
  ],
  [agentRole.guest]: [
    rule('', ['persistentvolumeclaims'], ['patch']),
    rule('', ['pods'], ['create']),
    rule('', ['pods/resize', 'pods/ephemeralcontainers'], ['patch']),
  ],
  [agentRole.offloaded]: [
    rule('', ['configmaps', 'secrets'], read),
    rule('networking.k8s.io', ['ingresses'], ['list', 'watch']),
    // A volume is moved by pods, into a claim beside the one that it takes the place of; how far they are stands in their logs.
    rule('', ['persistentvolumeclaims'], ['create', 'delete']),
    rule('', ['pods'], ['create']),
    rule('', ['pods/log'], ['get']),
    // Offloaded pods get tokens of their own accounts.
    rule('', ['serviceaccounts/token'], ['create']),
  ],
};

/** Leases: which replica leads, in the system namespace; heartbeats of virtual nodes in `kube-node-lease`. */
export const leaseRules: Rule[] = [rule('coordination.k8s.io', ['leases'], full)];
