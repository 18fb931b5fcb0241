/**
 * What a provider lets a consumer do, and nothing more: the three ClusterRoles that Liqo's controllers look up by label
 * (docs/design/control-plane.md#what-may-a-consumer-do-at-its-provider). Narrower than Liqo's: no status of anything can be written, and Pods are only looked at. Wider by VolumeSnapshots, which Liqo does not take.
 */
import type { ClusterRole } from './core-kinds.ts';
import { label } from './liqo-keys.ts';

type Rule = NonNullable<ClusterRole['rules']>[number];

/** Value of `app.kubernetes.io/name` by which a role is found. Every ClusterRole with the label is bound. */
export const remoteRoleName = {
  /** Bound to user CONSUMER in the tenant namespace. */
  controlPlane: 'remote-controlplane',
  /** Bound to group CONSUMER in every namespace mapped for it. */
  virtualKubelet: 'virtual-kubelet-remote',
  /** Bound to group CONSUMER in the whole cluster. */
  clusterwide: 'virtual-kubelet-remote-clusterwide',
} as const;
export const remoteRoleLabel = 'app.kubernetes.io/name';

const full = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
const read = ['get', 'list', 'watch'];
const rule = (apiGroup: string, resources: string[], verbs: string[]): Rule => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
});

const role = (name: string, rules: Rule[]): ClusterRole => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: {
    name: `liqo-${name}`,
    labels: { [remoteRoleLabel]: name, 'app.kubernetes.io/part-of': 'liqo', [label.managed]: 'true' },
  },
  rules,
});

export const remoteRoles = (): ClusterRole[] => [
  role(remoteRoleName.controlPlane, [
    rule('authentication.liqo.io', ['resourceslices', 'renews'], full),
    rule('offloading.liqo.io', ['namespacemaps'], full),
  ]),
  role(remoteRoleName.virtualKubelet, [
    rule('offloading.liqo.io', ['shadowpods', 'shadowendpointslices'], full),
    rule('', ['pods'], read),
    rule('', ['pods/log'], ['get']),
    // `get` is how a stream opened as a WebSocket is authorised, `create` how SPDY is, and newer servers ask for `create` in both.
    rule('', ['pods/exec', 'pods/attach', 'pods/portforward'], ['create', 'get']),
    rule('metrics.k8s.io', ['pods'], read),
    // Reflection: configuration, storage claims and services follow the pods; events come back.
    rule('', ['configmaps', 'secrets', 'services', 'persistentvolumeclaims'], full),
    rule('networking.k8s.io', ['ingresses'], full),
    // Of its own claims. Their contents, which say where storage has the data, are the provider's alone.
    rule('snapshot.storage.k8s.io', ['volumesnapshots'], ['create', 'delete', 'get', 'patch']),
    rule('', ['events'], read),
  ]),
  // Empty on purpose: it exists so that virtual kubelets of Liqo find it, and so that an administrator can grant more by label.
  role(remoteRoleName.clusterwide, []),
];
