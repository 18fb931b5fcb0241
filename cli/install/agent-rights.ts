/**
 * What the agent may do in its own cluster: no more than its controllers need (docs/security.md says why of each). It hands rights to peers by
 * binding the three remote roles, to the node process by binding its role in tenant namespaces, and to itself by binding three more in the
 * namespaces where it works: by name, so that it cannot widen what they allow.
 */
import { type AgentRole, agentRole } from '#shared/domain/agent-roles.ts';
import type { ClusterRole } from '#shared/domain/core-kinds.ts';
import { admission, systemNamespace } from '#shared/domain/liqo-keys.ts';

type Rule = NonNullable<ClusterRole['rules']>[number];

const read = ['get', 'list', 'watch'];
const follow = ['list', 'watch'];
/** Applied by the agent, and removed. */
const keep = ['create', 'delete', 'patch'];

const rule = (group: string, resources: string[], verbs: string[], resourceNames?: string[]): Rule => ({
  apiGroups: [group],
  resources,
  verbs,
  ...(resourceNames && { resourceNames }),
});

type OwnKinds = Readonly<Record<string, readonly [kinds: string[], verbs: string[]][]>>;

/**
 * What it writes of our own kinds. Not here, and read only: what administrators say (policies, locks, templates, Peerings, firewall and route
 * configurations), and what consumers write (ShadowEndpointSlices).
 */
const ownKinds: OwnKinds = {
  'authentication.liqo.io': [
    [['identities', 'renews', 'resourceslices', 'tenants'], keep],
    [['identities/status', 'renews/status', 'resourceslices/status', 'tenants/status'], ['update']],
  ],
  'core.liqo.io': [
    [['foreignclusters'], keep],
    [['foreignclusters/status'], ['update']],
  ],
  'ipam.liqo.io': [
    [['ips', 'networks'], keep],
    [['ips/status', 'networks/status'], ['update']],
  ],
  'isthmus.dev': [
    [
      ['brokerlinks', 'trustedpeers'],
      ['create', 'patch'],
    ],
    [['brokerlinks/status', 'peerings/status', 'trustedpeers/status'], ['patch']],
    [['retainedvolumes'], ['create', 'delete']],
    // The finalizer.
    [['volumemoves'], ['patch']],
    [['retainedvolumes/status', 'volumemoves/status'], ['update']],
  ],
  'networking.liqo.io': [
    [
      [
        'configurations',
        'connections',
        'gatewayclients',
        'gatewayservers',
        'internalfabrics',
        'internalnodes',
        'publickeies',
        'wggatewayclients',
        'wggatewayservers',
      ],
      keep,
    ],
    [
      [
        'configurations/status',
        'gatewayclients/status',
        'gatewayservers/status',
        'wggatewayclients/status',
        'wggatewayservers/status',
      ],
      ['update'],
    ],
    [['connections/status', 'internalnodes/status'], ['patch']],
  ],
  'offloading.liqo.io': [
    [['namespacemaps', 'quotas', 'virtualnodes'], keep],
    [['namespaceoffloadings'], ['patch']],
    [['shadowpods'], ['delete']],
    // They block the deletion of what owns Pods and EndpointSlices here: OpenShift asks for it (OwnerReferencesPermissionEnforcement).
    [['shadowendpointslices/finalizers', 'shadowpods/finalizers'], ['update']],
    [['namespacemaps/status', 'quotas/status'], ['update']],
    [['namespacemaps/status', 'namespaceoffloadings/status', 'shadowpods/status', 'virtualnodes/status'], ['patch']],
  ],
};
const webhooks = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];

/** Where that is not all kinds of the group: it has one BrokerLink, and knows its name. */
const followed: Readonly<Record<string, string[]>> = {
  'isthmus.dev': ['peeringlocks', 'peeringpolicies', 'peerings', 'retainedvolumes', 'trustedpeers', 'volumemoves'],
};
/** Kinds of which it reads single objects as well, where a cache may be late. */
const readSingly: Readonly<Record<string, string[]>> = {
  'authentication.liqo.io': ['identities', 'renews', 'resourceslices', 'tenants'],
  'isthmus.dev': ['brokerlinks', 'retainedvolumes', 'trustedpeers', 'volumemoves'],
  'networking.liqo.io': ['configurations', 'connections', 'gatewayclients', 'gatewayservers', 'publickeies'],
  'offloading.liqo.io': ['namespacemaps', 'namespaceoffloadings', 'shadowpods', 'virtualnodes', 'vkoptionstemplates'],
};

/** In the whole cluster. `grantable`: names of the ClusterRoles that it may bind. */
export const agentRules = (grantable: readonly string[]): Rule[] => [
  ...Object.entries(ownKinds).flatMap(([group, kinds]) => [
    rule(group, followed[group] ?? ['*'], follow),
    ...(readSingly[group] ? [rule(group, readSingly[group], ['get'])] : []),
    ...kinds.map(([resources, verbs]) => rule(group, [...resources], verbs)),
  ]),
  // Tenant namespaces and mapped namespaces are made and removed here.
  rule('', ['namespaces'], [...keep, ...read]),
  // Nonces, certificates, kubeconfigs and keys of links stand in tenant namespaces, which come and go with their finalizers.
  rule('', ['secrets'], [...keep, ...read]),
  // What a PeeringPolicy wants in every namespace of a consumer; all three only ever restrict.
  rule('', ['limitranges', 'resourcequotas'], [...keep, ...follow]),
  rule('networking.k8s.io', ['networkpolicies'], [...keep, ...follow]),
  // What is said about offloaded pods at the provider is copied here.
  rule('', ['events'], [...keep, ...follow]),
  rule('events.k8s.io', ['events'], ['create', 'patch']),
  // Claims of a virtual class get volumes, wherever they stand; real claims are made in a namespace of their own only. Claims of guests go once
  // their data is kept: the volume stays and says whose it is. Which classes are offered.
  rule('', ['persistentvolumeclaims'], [...read, 'patch']),
  rule('', ['persistentvolumes'], [...keep, ...read]),
  // How much of them is left, by the drivers whose classes these are.
  rule('storage.k8s.io', ['storageclasses', 'csidrivers', 'csistoragecapacities'], follow),
  rule('', ['persistentvolumeclaims/status'], ['patch']),
  // Snapshots, where their kinds are installed: of volumes at providers it does the work of a driver's snapshotter; of guests it keeps the data, which their
  // contents stand for, and lets them go; and one of this cluster is lent to the real claim that is to be made of it by a content of the same handle. Not by
  // a role in the namespace of the guest: when that namespace is deleted, its RoleBindings go at once, and its snapshots once their data is kept.
  rule('snapshot.storage.k8s.io', ['volumesnapshots'], [...read, 'patch']),
  rule('snapshot.storage.k8s.io', ['volumesnapshotcontents'], [...keep, ...read]),
  rule('snapshot.storage.k8s.io', ['volumesnapshotcontents/status'], ['patch']),
  rule('snapshot.storage.k8s.io', ['volumesnapshotclasses'], ['get']),
  // Services and endpoints by which exposed addresses and reflected Services are reached, wherever an IP object stands.
  rule('apps', ['deployments'], follow),
  rule('', ['services'], [...keep, ...read]),
  rule('discovery.k8s.io', ['endpointslices'], [...keep, ...read]),
  // A virtual kubelet, as every kubelet: pods bound to its node, in any namespace, get status and are deleted; its Node is kept.
  rule('', ['pods'], ['delete', 'patch', ...read]),
  rule('', ['pods/status'], ['patch']),
  rule('', ['pods/eviction'], ['create']),
  rule('', ['nodes'], [...keep, ...read]),
  rule('', ['nodes/status'], ['patch']),
  // Peers: certificates for them, and the bindings that say what those may do.
  rule('rbac.authorization.k8s.io', ['rolebindings'], [...keep, ...read, 'update']),
  rule('rbac.authorization.k8s.io', ['clusterrolebindings'], ['create', 'delete', 'update', ...read]),
  rule('rbac.authorization.k8s.io', ['clusterroles'], follow),
  rule('rbac.authorization.k8s.io', ['clusterroles'], ['bind'], [...grantable]),
  rule('certificates.k8s.io', ['certificatesigningrequests'], ['create', 'delete', ...read]),
  rule('certificates.k8s.io', ['certificatesigningrequests/approval'], ['update']),
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
  rule('admissionregistration.k8s.io', webhooks, ['create', ...follow]),
  rule('admissionregistration.k8s.io', webhooks, ['patch'], [admission.configuration]),
];

/** In namespaces where it works: by RoleBindings that it makes when they appear. */
export const namespaceRules: Readonly<Record<AgentRole, Rule[]>> = {
  [agentRole.tenant]: [
    rule('apps', ['deployments'], keep),
    // Where this cluster gives tokens in place of certificates: the accounts of a consumer, and tokens of them.
    rule('', ['serviceaccounts'], ['create', 'patch']),
    rule('', ['serviceaccounts/token'], ['create']),
    // Where it does the work of a node as well: which replica of a gateway is active.
    rule('coordination.k8s.io', ['leases'], ['create', 'patch', 'update', ...read]),
  ],
  [agentRole.guest]: [rule('', ['pods'], ['create']), rule('', ['pods/resize', 'pods/ephemeralcontainers'], ['patch'])],
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

/** Which replica leads, in the system namespace; heartbeats of virtual nodes. */
export const leaseRules = {
  [systemNamespace]: [rule('coordination.k8s.io', ['leases'], ['create', 'update', ...read])],
  'kube-node-lease': [rule('coordination.k8s.io', ['leases'], keep)],
} satisfies Readonly<Record<string, Rule[]>>;
