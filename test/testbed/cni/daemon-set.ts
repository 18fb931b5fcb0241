/** What a CNI runs on every node, as its own manifests have it. Pure: objects with the path they are applied to. */
import type { Applied } from '../addons.ts';

/** Programs of the node, for images that hold only what the CNI itself is: both call iptables. */
const ofNode = ['/usr', '/etc/alternatives'] as const;

export interface CniDaemon {
  readonly namespace: string;
  readonly name: string;
  readonly account: string;
  readonly rules: readonly object[];
  /** Of taints that may keep it from a node. */
  readonly tolerations: readonly object[];
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly initContainers?: readonly CniInitContainer[];
  /** Paths of the node by where the container has them. */
  readonly mounts: Readonly<Record<string, string>>;
  /** Of the same namespace, by where the container has them. */
  readonly configMaps?: Readonly<Record<string, string>>;
}

interface CniInitContainer {
  readonly name: string;
  readonly command: readonly string[];
}

const nameOf = (mountPath: string): string => mountPath.slice(1).replaceAll(/[^a-z0-9]+/g, '-');

/** The account with its rights, and the DaemonSet. */
export function cniDaemon(daemon: CniDaemon): Applied[] {
  const {
    namespace,
    name,
    account,
    rules,
    tolerations,
    image,
    args,
    env = {},
    initContainers = [],
    configMaps = {},
  } = daemon;
  const labels = { 'k8s-app': name };
  const mounts = { ...Object.fromEntries(ofNode.map((folder) => [folder, folder])), ...daemon.mounts };
  const common = {
    image,
    imagePullPolicy: 'IfNotPresent',
    securityContext: { privileged: true },
    volumeMounts: [...Object.keys(mounts), ...Object.keys(configMaps)].map((mountPath) => ({
      name: nameOf(mountPath),
      mountPath,
      ...(ofNode.some((folder) => folder === mountPath) ? { readOnly: true } : {}),
    })),
  };
  const ofAccount = (kind: 'ClusterRole' | 'ClusterRoleBinding', fields: object): Applied => ({
    path: `/apis/rbac.authorization.k8s.io/v1/${kind.toLowerCase()}s/${name}`,
    object: { apiVersion: 'rbac.authorization.k8s.io/v1', kind, metadata: { name }, ...fields },
  });
  return [
    {
      path: `/api/v1/namespaces/${namespace}/serviceaccounts/${account}`,
      object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace } },
    },
    ofAccount('ClusterRole', { rules }),
    ofAccount('ClusterRoleBinding', {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    }),
    {
      path: `/apis/apps/v1/namespaces/${namespace}/daemonsets/${name}`,
      object: {
        apiVersion: 'apps/v1',
        kind: 'DaemonSet',
        metadata: { name, namespace, labels },
        spec: {
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: {
              serviceAccountName: account,
              hostNetwork: true,
              priorityClassName: 'system-node-critical',
              terminationGracePeriodSeconds: 2,
              // Not `Exists` without a key: a virtual node has no network of its own for it to make.
              nodeSelector: { 'kubernetes.io/os': 'linux' },
              tolerations,
              initContainers: initContainers.map((one) => ({ ...common, ...one })),
              containers: [
                {
                  ...common,
                  name,
                  args,
                  env: [
                    { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
                    { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
                    { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
                    ...Object.entries(env).map(([key, value]) => ({ name: key, value })),
                  ],
                  resources: { requests: { cpu: '10m', memory: '32Mi' } },
                },
              ],
              volumes: [
                ...Object.entries(mounts).map(([mountPath, path]) => ({
                  name: nameOf(mountPath),
                  hostPath: { path },
                })),
                ...Object.entries(configMaps).map(([mountPath, map]) => ({
                  name: nameOf(mountPath),
                  configMap: { name: map },
                })),
              ],
            },
          },
        },
      },
    },
  ];
}
