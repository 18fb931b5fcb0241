/** Which requests the API server asks us about, and on which terms: one entry for each webhook. */
import type { ReflectedKind } from '#shared/schema/isthmus/peering-policy.ts';
import {
  canBeRefused,
  creatorIsMissing,
  exceptSystemNamespace,
  guestNamespaces,
  hasFinalizers,
  isExposing,
  maybeByPeer,
  offloadedNamespaces,
} from './scopes.ts';

type Operation = 'CREATE' | 'UPDATE' | 'DELETE';
export type FailurePolicy = 'Fail' | 'Ignore';

export interface Entry {
  readonly name: string;
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly resources: readonly string[];
  readonly operations: readonly Operation[];
  /** Ignore only where the hook fills in, or refuses early, what controllers cope without. */
  readonly failurePolicy: FailurePolicy;
  /** Objects labelled `liqo.io/webhook-skip=true` pass. */
  readonly skippable: boolean;
  readonly namespaceSelector?: (systemNamespace: string) => object;
  /** A CEL expression: we are asked only where it holds. */
  readonly onlyIf?: string;
  readonly sideEffects: 'None' | 'NoneOnDryRun';
}

const both: readonly Operation[] = ['CREATE', 'UPDATE'];
const all: readonly Operation[] = ['CREATE', 'UPDATE', 'DELETE'];
const offloading = { group: 'offloading.liqo.io', version: 'v1beta1' } as const;
const authentication = { group: 'authentication.liqo.io', version: 'v1beta1' } as const;
const networking = { group: 'networking.liqo.io', version: 'v1beta1' } as const;
const usual = { operations: both, failurePolicy: 'Fail', skippable: true, sideEffects: 'None' } as const;

/**
 * Each has its data kept or deleted by order, so none passes unseen. Afterwards the cluster's own components, which bind claims and take them down, cost no
 * question and need no agent.
 */
const claims = {
  group: '',
  version: 'v1',
  resources: ['persistentvolumeclaims'],
  skippable: false,
  namespaceSelector: guestNamespaces,
  onlyIf: `request.operation == "CREATE" || ${maybeByPeer}`,
} as const;

/** As of claims: a snapshot outlives the claim it was taken of. Clusters without the kind are never asked. */
const snapshots = {
  ...claims,
  group: 'snapshot.storage.k8s.io',
  resources: ['volumesnapshots'],
} as const;

export const mutating: readonly Entry[] = [
  {
    ...usual,
    name: 'pod.mutate.liqo.io',
    path: '/mutate/pod',
    group: '',
    version: 'v1',
    resources: ['pods'],
    operations: ['CREATE'],
    skippable: false,
    namespaceSelector: offloadedNamespaces,
  },
  {
    ...usual,
    ...offloading,
    name: 'shadowpod.mutate.liqo.io',
    path: '/mutate/shadowpods',
    resources: ['shadowpods'],
    skippable: false,
    onlyIf: creatorIsMissing,
  },
  {
    ...usual,
    ...offloading,
    name: 'virtualnode.mutate.liqo.io',
    path: '/mutate/virtualnodes',
    resources: ['virtualnodes'],
    failurePolicy: 'Ignore',
  },
  { ...usual, ...claims, name: 'claim.mutate.liqo.io', path: '/mutate/claims' },
  {
    ...usual,
    ...snapshots,
    name: 'volumesnapshot.mutate.liqo.io',
    path: '/mutate/snapshots',
    operations: ['CREATE'],
  },
  {
    ...usual,
    ...authentication,
    name: 'tenant.mutate.liqo.io',
    path: '/mutate/tenants',
    resources: ['tenants'],
    failurePolicy: 'Ignore',
  },
  {
    ...usual,
    group: 'core.liqo.io',
    version: 'v1beta1',
    name: 'fc.mutate.liqo.io',
    path: '/mutate/foreign-cluster',
    resources: ['foreignclusters'],
    failurePolicy: 'Ignore',
  },
  {
    ...usual,
    ...networking,
    name: 'firewallconfiguration.mutate.liqo.io',
    path: '/mutate/firewallconfigurations',
    resources: ['firewallconfigurations'],
  },
];

export const validating: readonly Entry[] = [
  {
    ...usual,
    ...offloading,
    name: 'nsoff.validate.liqo.io',
    path: '/validate/namespace-offloading',
    resources: ['namespaceoffloadings'],
  },
  {
    ...usual,
    ...offloading,
    name: 'shadowpod.validate.liqo.io',
    path: '/validate/shadowpods',
    resources: ['shadowpods'],
    skippable: false,
    // Admitted pods are remembered until the watch shows them.
    sideEffects: 'NoneOnDryRun',
  },
  {
    ...usual,
    ...offloading,
    name: 'virtualnode.validate.liqo.io',
    path: '/validate/virtualnodes',
    resources: ['virtualnodes'],
    operations: ['CREATE'],
  },
  {
    ...usual,
    ...offloading,
    name: 'vkoptionstemplate.validate.liqo.io',
    path: '/validate/vkoptionstemplates',
    resources: ['vkoptionstemplates'],
    onlyIf: canBeRefused,
  },
  {
    ...usual,
    ...offloading,
    name: 'namespacemap.validate.liqo.io',
    path: '/validate/replicas',
    resources: ['namespacemaps'],
    operations: all,
    skippable: false,
  },
  {
    ...usual,
    ...authentication,
    name: 'renew.validate.liqo.io',
    path: '/validate/replicas',
    resources: ['renews'],
    operations: all,
    skippable: false,
  },
  {
    ...usual,
    ...authentication,
    name: 'resourceslice.validate.liqo.io',
    path: '/validate/resourceslices',
    resources: ['resourceslices'],
    operations: all,
    skippable: false,
  },
  {
    ...usual,
    ...authentication,
    name: 'tenant.validate.liqo.io',
    path: '/validate/tenants',
    resources: ['tenants'],
    // A peering user may label its Tenant.
    skippable: false,
  },
  {
    ...usual,
    group: '',
    version: 'v1',
    name: 'service.validate.liqo.io',
    path: '/validate/services',
    resources: ['services'],
    skippable: false,
    namespaceSelector: guestNamespaces,
    onlyIf: isExposing,
  },
  {
    ...usual,
    group: 'networking.k8s.io',
    version: 'v1',
    name: 'ingress.validate.liqo.io',
    path: '/validate/ingresses',
    resources: ['ingresses'],
    skippable: false,
    namespaceSelector: guestNamespaces,
  },
  {
    ...usual,
    group: '',
    version: 'v1',
    name: 'finalizers.validate.liqo.io',
    path: '/validate/finalizers',
    resources: ['configmaps', 'secrets'],
    skippable: false,
    namespaceSelector: guestNamespaces,
    onlyIf: hasFinalizers,
  },
  {
    ...usual,
    group: '',
    version: 'v1',
    name: 'secret.validate.liqo.io',
    path: '/validate/secrets',
    resources: ['secrets'],
    operations: ['CREATE'],
    skippable: false,
    namespaceSelector: guestNamespaces,
    onlyIf: 'has(object.type) && object.type == "kubernetes.io/service-account-token"',
  },
  {
    ...usual,
    ...claims,
    name: 'claim.validate.liqo.io',
    path: '/validate/claims',
    // Admitted claims are remembered until the watch shows them.
    sideEffects: 'NoneOnDryRun',
  },
  {
    ...usual,
    ...snapshots,
    name: 'volumesnapshot.validate.liqo.io',
    path: '/validate/snapshots',
    sideEffects: 'NoneOnDryRun',
  },
  {
    ...usual,
    ...offloading,
    name: 'shadowendpointslice.validate.liqo.io',
    path: '/validate/finalizers',
    resources: ['shadowendpointslices'],
    skippable: false,
    namespaceSelector: guestNamespaces,
    onlyIf: hasFinalizers,
  },
  {
    ...usual,
    ...networking,
    name: 'firewallconfiguration.validate.liqo.io',
    path: '/validate/firewallconfigurations',
    resources: ['firewallconfigurations'],
  },
  {
    ...usual,
    ...networking,
    name: 'routeconfiguration.validate.liqo.io',
    path: '/validate/routeconfigurations',
    resources: ['routeconfigurations'],
  },
  {
    ...usual,
    ...networking,
    name: 'configuration.validate.liqo.io',
    path: '/validate/configurations',
    resources: ['configurations'],
  },
  {
    ...usual,
    ...networking,
    name: 'gateway.validate.liqo.io',
    path: '/validate/gateways',
    resources: ['gatewayservers', 'gatewayclients'],
  },
  {
    ...usual,
    group: 'ipam.liqo.io',
    version: 'v1alpha1',
    name: 'network.validate.liqo.io',
    path: '/validate/networks',
    resources: ['networks'],
    // Only administrators write them, an installation while no agent answers yet; IPAM refuses the same in the status.
    failurePolicy: 'Ignore',
  },
  {
    ...usual,
    group: 'ipam.liqo.io',
    version: 'v1alpha1',
    name: 'ip.validate.liqo.io',
    path: '/validate/ips',
    resources: ['ips'],
    // A peering user may label its IPs.
    skippable: false,
    namespaceSelector: exceptSystemNamespace,
  },
];

const core = { group: '', version: 'v1' } as const;
const reflected: Readonly<Partial<Record<ReflectedKind, { group: string; version: string; resource: string }>>> = {
  service: { ...core, resource: 'services' },
  endpointslice: { ...offloading, resource: 'shadowendpointslices' },
  ingress: { group: 'networking.k8s.io', version: 'v1', resource: 'ingresses' },
  configmap: { ...core, resource: 'configmaps' },
  secret: { ...core, resource: 'secrets' },
  serviceaccount: { ...core, resource: 'secrets' },
  persistentvolumeclaim: { ...core, resource: 'persistentvolumeclaims' },
};

/** Each write of a guest would cost a call: only the kinds that some policy keeps out are asked about. */
export const guestKinds = (refused: readonly ReflectedKind[]): Entry[] => {
  const byResource = new Map(
    refused.flatMap((kind) => (reflected[kind] ? [[reflected[kind].resource, reflected[kind]]] : [])),
  );
  return [...byResource.values()].map(({ group, version, resource }) => ({
    ...usual,
    name: `${resource}.reflected.validate.liqo.io`,
    path: '/validate/reflected',
    group,
    version,
    resources: [resource],
    skippable: false,
    namespaceSelector: guestNamespaces,
    onlyIf: maybeByPeer,
  }));
};
