/**
 * Rights of the roles beside this file that `npm test` need not use, each with why the role has it all the same. `scripts/rights` compares with the audit
 * logs of a run: it refuses rights that are neither used nor here, and those that are here as never used and were used.
 */

interface UnseenRights {
  readonly role: string;
  /** `verb group/resource`. */
  readonly rights: readonly string[];
  readonly reason: string;
  /** They may be used, by chance or by a test of one account or another. Absent: a use is an error of this list. */
  readonly mayBeUsed?: true;
}

/** The roles of peers are a contract with consumers that run Liqo: its virtual kubelet and replicator ask for what ours do by other verbs. */
const ofLiqo = 'consumers that run Liqo ask for it: Liqo grants its peers the same, and ours writes by other verbs';

export const unseenRights: readonly UnseenRights[] = [
  {
    role: 'liqo-remote-controlplane',
    rights: [
      'patch authentication.liqo.io/resourceslices',
      'patch authentication.liqo.io/renews',
      'update authentication.liqo.io/renews',
      'patch offloading.liqo.io/namespacemaps',
      'delete offloading.liqo.io/namespacemaps',
    ],
    reason: ofLiqo,
    mayBeUsed: true,
  },
  {
    role: 'liqo-virtual-kubelet-remote',
    rights: [
      'get offloading.liqo.io/shadowpods',
      'update offloading.liqo.io/shadowpods',
      'delete offloading.liqo.io/shadowendpointslices',
      'update offloading.liqo.io/shadowendpointslices',
      'delete configmaps',
      'update configmaps',
      'get secrets',
      'patch secrets',
      'update secrets',
      'delete services',
      'update services',
      'create persistentvolumeclaims',
      'delete persistentvolumeclaims',
      'get persistentvolumeclaims',
      'patch persistentvolumeclaims',
      'update persistentvolumeclaims',
      'watch persistentvolumeclaims',
      'create networking.k8s.io/ingresses',
      'delete networking.k8s.io/ingresses',
      'get networking.k8s.io/ingresses',
      'patch networking.k8s.io/ingresses',
      'update networking.k8s.io/ingresses',
      'get events',
    ],
    reason: ofLiqo,
    mayBeUsed: true,
  },
  {
    role: 'liqo-virtual-kubelet-remote',
    rights: [
      'get pods/log',
      'create pods/exec',
      'get pods/exec',
      'create pods/attach',
      'get pods/attach',
      'create pods/portforward',
      'get pods/portforward',
    ],
    reason:
      'kubectl logs, exec, attach and port-forward of offloaded pods: the verb depends on the kubectl and on the version of the API server',
    mayBeUsed: true,
  },
  {
    role: 'liqo-virtual-kubelet-remote',
    rights: ['get metrics.k8s.io/pods', 'list metrics.k8s.io/pods', 'watch metrics.k8s.io/pods'],
    reason: 'kubectl top of offloaded pods, where the provider has a metrics server',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-agent',
    rights: [
      'delete networking.liqo.io/internalfabrics',
      'delete networking.liqo.io/internalnodes',
      'delete networking.liqo.io/wggatewayclients',
      'delete networking.liqo.io/wggatewayservers',
    ],
    reason: 'of a gateway or node that goes: the agent and the garbage collector both remove them, and one is first',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-agent',
    rights: ['update rbac.authorization.k8s.io/clusterrolebindings', 'update rbac.authorization.k8s.io/rolebindings'],
    reason:
      'bindings of a peer whose holder changed, or that were changed by hand: the cache may show them late, and they are made then',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-agent-tenant',
    rights: ['delete apps/deployments'],
    reason: 'of a gateway that goes: the agent and the garbage collector both remove it, and one is first',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-agent',
    rights: ['get networking.liqo.io/connections'],
    reason:
      'a Connection that a user labelled as one of a peering of the broker: its field managers are read before it is removed',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-agent',
    rights: ['get authentication.liqo.io/renews', 'get offloading.liqo.io/namespacemaps'],
    reason: 'a copy of a Renew or NamespaceMap at the provider whose original went while no agent saw it',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-agent',
    rights: ['delete offloading.liqo.io/shadowpods'],
    reason: 'a consumer that is told to drain and does not take its ShadowPods back before the deadline',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-agent',
    rights: ['patch events', 'delete events'],
    reason: 'copies of Events of a provider: whether one counts up or goes while it is followed is a matter of time',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-agent',
    rights: [
      'update offloading.liqo.io/shadowendpointslices/finalizers',
      'update offloading.liqo.io/shadowpods/finalizers',
    ],
    reason:
      'no request names it: the admission plugin OwnerReferencesPermissionEnforcement, which OpenShift has and the test bed has not, asks for it when a Pod or an EndpointSlice blocks the deletion of its owner',
  },
  {
    role: 'isthmus-agent',
    rights: [
      'create limitranges',
      'patch limitranges',
      'delete limitranges',
      'delete resourcequotas',
      'delete networking.k8s.io/networkpolicies',
    ],
    reason:
      'namespaceDefaults of a PeeringPolicy, set and taken back: policies.real.test.ts and hostile-guest.real.test.ts do so as an administrator',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-fabric',
    rights: ['update networking.liqo.io/routeconfigurations/status'],
    reason: 'RouteConfigurations that a user makes by hand; test/system/network/node applies them as an administrator',
    mayBeUsed: true,
  },
  {
    role: 'liqo-virtual-kubelet-remote',
    rights: ['create', 'delete', 'get', 'patch'].map((verb) => `${verb} snapshot.storage.k8s.io/volumesnapshots`),
    reason: 'VolumeSnapshots of guests: guest-snapshots.long.test.ts, of npm run test:long, takes them as a consumer',
    mayBeUsed: true,
  },
  {
    role: 'isthmus-agent',
    rights: ['patch snapshot.storage.k8s.io/volumesnapshots'],
    reason:
      'marks and finalizers of VolumeSnapshots of guests: guest-snapshots.long.test.ts, of npm run test:long, has some',
    mayBeUsed: true,
  },
];
