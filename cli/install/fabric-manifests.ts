/**
 * The node process on every node that the controllers do not serve themselves, and what it may do. It is root in the host's network; towards the API server it may only read what it
 * programs, and report. Leaving: it is told by the absence of its DaemonSet when it ends, and sweeps the kernel then. Pure.
 */
import type { ClusterRole, ClusterRoleBinding, DaemonSet, ServiceAccount } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { label, linuxOnly, systemNamespace, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { fabricName, fabricTenantRole, nodeProcess, nodeProcessLabel } from '#shared/domain/network-keys.ts';
import { fullMasqueradeEnv, hostPorts } from './arrangement.ts';
import { installLabel } from './install-label.ts';
import { type MetricsAccess, metricsEnv, metricsPort, reviewRules } from './metrics-manifests.ts';

export interface FabricOptions {
  readonly clusterId: string;
  readonly image: string;
  /** Pods, too, reach peers by their node's address. Absent: as the CNI needs it. */
  readonly fullMasquerade?: boolean;
  /** A further ServiceAccount whose process does the work of a node. */
  readonly alsoRunBy?: string;
  /** Absent: it serves no metrics and listens at no port. */
  readonly metrics?: MetricsAccess;
}

export const fabricLabels = { 'app.kubernetes.io/name': fabricName, 'app.kubernetes.io/component': 'fabric' } as const;

const rbac = 'rbac.authorization.k8s.io';
const within = { namespace: systemNamespace } as const;
const follow = ['list', 'watch'];

type Rule = NonNullable<ClusterRole['rules']>[number];
const rule = (group: string, resources: string[], verbs: string[], resourceNames?: string[]): Rule => ({
  apiGroups: [group],
  resources,
  verbs,
  ...(resourceNames && { resourceNames }),
});

const clusterRole = (name: string, rules: Rule[]): ClusterRole => ({
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRole',
  metadata: { name, labels: { ...installLabel } },
  rules,
});

const networking = 'networking.liqo.io';

const fabricRules = (): Rule[] => [
  rule('', ['nodes', 'pods'], follow),
  rule(
    networking,
    [
      'configurations',
      'gatewayservers',
      'gatewayclients',
      'publickeies',
      'connections',
      'internalnodes',
      'internalfabrics',
      'firewallconfigurations',
      'routeconfigurations',
    ],
    follow,
  ),
  rule('ipam.liqo.io', ['networks', 'ips'], follow),
  // Which WireGuard its kernel has, as an annotation.
  rule(networking, ['internalnodes'], ['patch']),
  rule(networking, ['internalnodes/status', 'connections/status'], ['patch']),
  rule(networking, ['firewallconfigurations/status', 'routeconfigurations/status'], ['update']),
  rule('events.k8s.io', ['events'], ['create', 'patch']),
  // When it ends: is this an update, or is the cluster being left?
  rule('apps', ['daemonsets'], ['get'], [fabricName]),
];

/** In tenant namespaces: which replica of a gateway is active. */
const fabricTenantRules = (): Rule[] => [
  rule('coordination.k8s.io', ['leases'], ['create', 'get', 'patch', 'update', ...follow]),
  rule('', ['pods'], ['patch']),
];

const binding = (accounts: readonly string[]): ClusterRoleBinding => ({
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name: fabricName, labels: { ...installLabel } },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: fabricName },
  subjects: accounts.map((name) => ({ kind: 'ServiceAccount', name, namespace: systemNamespace })),
});

const serviceAccount = (): ServiceAccount => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: fabricName, ...within, labels: { ...installLabel } },
});

/** The second role is bound by the controller in each namespace that has a gateway. */
export const fabricManifests = (options: FabricOptions): KubeObject[] => [
  clusterRole(fabricName, [...fabricRules(), ...(options.metrics === 'authenticated' ? reviewRules() : [])]),
  clusterRole(fabricTenantRole, fabricTenantRules()),
  binding([fabricName, ...(options.alsoRunBy === undefined ? [] : [options.alsoRunBy])]),
  serviceAccount(),
  daemonSet(options),
];

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });

/** Every mebibyte counts once for each node. */
const command = [
  '/usr/local/bin/node',
  '--max-semi-space-size=1',
  '--optimize-for-size',
  '--single-threaded',
  '/app/fabric.mjs',
];

const daemonSet = ({ clusterId, image, fullMasquerade, metrics }: FabricOptions): DaemonSet => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: fabricName, ...within, labels: { ...installLabel, ...fabricLabels } },
  spec: {
    selector: { matchLabels: { ...fabricLabels } },
    // Packets go on while it is replaced: it leaves the kernel as it is.
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '20%' } },
    template: {
      metadata: { labels: { ...installLabel, ...fabricLabels, [nodeProcessLabel]: nodeProcess.own } },
      spec: {
        serviceAccountName: fabricName,
        hostNetwork: true,
        hostPID: true,
        dnsPolicy: 'Default',
        priorityClassName: 'system-node-critical',
        terminationGracePeriodSeconds: 20,
        tolerations: [{ operator: 'Exists' }],
        nodeSelector: { ...linuxOnly },
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                {
                  matchExpressions: [
                    { key: label.type, operator: 'NotIn', values: [virtualNodeType] },
                    { key: nodeProcessLabel, operator: 'NotIn', values: [nodeProcess.shared] },
                  ],
                },
              ],
            },
          },
        },
        containers: [
          {
            name: 'fabric',
            image,
            imagePullPolicy: 'IfNotPresent',
            command: [...command],
            env: [
              { name: 'MALLOC_ARENA_MAX', value: '1' },
              { name: 'UV_THREADPOOL_SIZE', value: '2' },
              { name: 'ISTHMUS_CLUSTER_ID', value: clusterId },
              { name: 'ISTHMUS_SYSTEM_NAMESPACE', value: systemNamespace },
              { name: fullMasqueradeEnv, value: String(fullMasquerade ?? 'auto') },
              field('NODE_NAME', 'spec.nodeName'),
              field('POD_NAME', 'metadata.name'),
              field('POD_IP', 'status.podIP'),
              ...(metrics === undefined ? [] : metricsEnv(metrics, hostPorts.metrics, true)),
            ],
            // No probe: it shares the host's network, where nothing of it listens but, when asked for, its metrics.
            ...(metrics === undefined
              ? {}
              : { ports: [{ name: metricsPort, containerPort: hostPorts.metrics, protocol: 'TCP' as const }] }),
            resources: { requests: { cpu: '10m', memory: '48Mi' }, limits: { memory: '256Mi' } },
            securityContext: { privileged: true, runAsUser: 0, runAsGroup: 0, readOnlyRootFilesystem: true },
            // Batches for ip and nft.
            volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
          },
        ],
        volumes: [{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '32Mi' } }],
      },
    },
  },
});
