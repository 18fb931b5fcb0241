/** Everything that `isthmus join` applies to a cluster, in the order of applying. Pure: same options, same objects. */
import type { ProfileName } from '#cli/platform/profiles.ts';
import type { PlatformSettings } from '#cli/platform/settings.ts';
import { agentAccount } from '#shared/domain/agent-roles.ts';
import type { Deployment, Service } from '#shared/domain/core-kinds.ts';
import { type CredentialSetting, credentialVariable } from '#shared/domain/credential-setting.ts';
import type { ConfigMap, KubeObject, Namespace, Secret } from '#shared/domain/kube-object.ts';
import { admission, clusterIdConfigMap, linuxOnly, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { gatewayConstraintsRole, type NodeProcess } from '#shared/domain/network-keys.ts';
import { systemRoleOfPeeringUsers, tenantRoleOfPeeringUsers } from '#shared/domain/peering-user-roles.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { customResourceDefinitions } from '#shared/schema/crd.ts';
import { defaultSharePercent, type PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { alone, withNodeProcess } from './arrangement.ts';
import { callerManifests } from './caller-manifests.ts';
import { fabricManifests } from './fabric-manifests.ts';
import { gatewayTemplates } from './gateway-templates.ts';
import { installLabel } from './install-label.ts';
import { type MetricsAccess, metricsEnv, metricsManifests, metricsPort } from './metrics-manifests.ts';
import { networkManifests } from './network-manifests.ts';
import { platformManifests } from './platform-manifests.ts';
import type { ClusterRanges } from './ranges.ts';
import { agentRights } from './rights-manifests.ts';
import { type StorageInstallOptions, storageManifests } from './storage-manifests.ts';

export interface InstallOptions {
  readonly clusterId: string;
  readonly image: string;
  /** How peers reach this cluster's API server. */
  readonly apiServerUrl: string;
  readonly replicas: number;
  /** Labels of the cluster as peers see it. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Absent: the cluster is enrolled already and only updated. */
  readonly joinToken?: string;
  /** Changes with each token, so that a running agent restarts and finds it. */
  readonly joinStamp?: string;
  /** Absent: no network of ours. */
  readonly network?: NetworkInstallOptions;
  /** Absent: claims get no volumes from us. */
  readonly storage?: StorageInstallOptions;
  /** Of the first PeeringPolicy; a policy that is there stays as it is. */
  readonly sharePercent?: number;
  /** What consumers get. Absent: as the agent does it by default. */
  readonly credentials?: CredentialSetting;
  /** `shared`: the controllers do the node's work, too; needs a network and one replica. Default: `own`. */
  readonly nodeProcess?: NodeProcess;
  /** Absent: no process serves metrics. */
  readonly metrics?: MetricsAccess;
  /** Ranges from which the API server calls the webhooks, to close them to all others. Absent or empty: they are open. */
  readonly webhookCallers?: readonly string[];
  /** What the distribution needs. */
  readonly platform?: PlatformSettings;
  /** The distribution, where a person said it; kept for the next installation. */
  readonly profile?: ProfileName;
}

export interface NetworkInstallOptions {
  readonly ranges: ClusterRanges;
  /** Of each gateway. Absent: by the number of nodes. */
  readonly gatewayReplicas?: number;
  /** Pods, too, reach peers by their node's address. Absent: as the CNI needs it. */
  readonly fullMasquerade?: boolean;
}

export const agentName = agentAccount;
const joinSecret = 'isthmus-join';
export const defaultPolicy = 'default';

/** On the pod template. */
export const joinStampAnnotation = 'isthmus.dev/join-stamp';

/** On the Deployment: the distribution that a person named. */
export const profileAnnotation = 'isthmus.dev/profile';

/** How liqoctl finds the Deployment, exactly one, and in it the container `controller-manager`. */
export const controllerLabels = {
  'app.kubernetes.io/name': 'controller-manager',
  'app.kubernetes.io/component': 'controller-manager',
} as const;
export const controllerSelector = Object.entries(controllerLabels)
  .map(([key, value]) => `${key}=${value}`)
  .join(',');

const within = { namespace: systemNamespace } as const;

/** Cluster-wide first, then what lives in the system namespace; the Deployment last, so that it starts into a complete world. */
export function agentManifests(options: InstallOptions): KubeObject[] {
  const [first, ...rest] = objectsOfAgent(options);
  return [first, ...customResourceDefinitions(), ...rest];
}

/** All but the CustomResourceDefinitions, the namespace first. */
export function objectsOfAgent(options: InstallOptions): [Namespace, ...KubeObject[]] {
  return [
    namespace(options.network !== undefined),
    ...(options.network === undefined ? [] : networkOf(options, options.network)),
    ...remoteRoles(),
    tenantRoleOfPeeringUsers(),
    systemRoleOfPeeringUsers(),
    ...agentRights(options.platform),
    ...platformManifests(options),
    ...(options.storage === undefined ? [] : storageManifests(options.storage)),
    clusterIdMap(options.clusterId),
    policy(options.sharePercent ?? defaultSharePercent),
    ...(options.joinToken === undefined ? [] : [tokenSecret(options.joinToken)]),
    service(),
    ...callerManifests(options.webhookCallers ?? [], controllerLabels),
    ...(options.metrics === undefined ? [] : metricsManifests(options.metrics, options.network !== undefined)),
    ...(options.network === undefined ? [] : fabricOf(options, options.network)),
    deployment(options),
  ];
}

/** What the controllers must find when they start. */
const networkOf = (
  { image, platform }: InstallOptions,
  { ranges, gatewayReplicas }: NetworkInstallOptions,
): KubeObject[] => [
  ...networkManifests(ranges),
  ...gatewayTemplates({
    image,
    ...(gatewayReplicas !== undefined && { replicas: gatewayReplicas }),
    ...(platform?.gatewayAnnotations && { serviceAnnotations: platform.gatewayAnnotations }),
    ...(platform?.gatewayHealthPort && { healthPort: platform.gatewayHealthPort }),
  }),
];

const fabricOf = (options: InstallOptions, network: NetworkInstallOptions): KubeObject[] =>
  fabricManifests({ ...options, ...network, ...(options.nodeProcess === 'shared' && { alsoRunBy: agentName }) });

/** Clusters that hold namespaces to a standard by default would refuse the node process, which is root in the host's network. */
const namespace = (hasNetwork: boolean): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: systemNamespace,
    labels: { ...installLabel, ...(hasNetwork && { 'pod-security.kubernetes.io/enforce': 'privileged' }) },
  },
});

const clusterIdMap = (clusterId: string): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: clusterIdConfigMap,
    ...within,
    labels: { ...installLabel, 'app.kubernetes.io/name': 'clusterid-configmap' },
  },
  data: { CLUSTER_ID: clusterId },
});

/** Inside one tenant clusters peer without anybody agreeing by hand, until the administrator says otherwise. */
const policy = (sharePercent: number): PeeringPolicy => ({
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringPolicy',
  metadata: { name: defaultPolicy, labels: { ...installLabel } },
  spec: {
    tenants: ['*'],
    asConsumer: { enabled: true, autoAccept: true, peers: ['*'] },
    asProvider: {
      enabled: true,
      autoAccept: true,
      peers: ['*'],
      maxResourcesPerPeer: {},
      classes: ['default'],
      sharePercent,
      elastic: false,
    },
    reflectedKinds: [
      'service',
      'endpointslice',
      'ingress',
      'configmap',
      'secret',
      'serviceaccount',
      'persistentvolumeclaim',
      'event',
    ],
  },
});

const tokenSecret = (token: string): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: joinSecret, ...within, labels: { ...installLabel } },
  type: 'Opaque',
  data: { token: base64(token) },
});

const base64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

const service = (): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: admission.service, ...within, labels: { ...installLabel } },
  spec: {
    selector: { ...controllerLabels },
    ports: [{ name: 'webhook', port: 443, targetPort: 'webhook', protocol: 'TCP' }],
  },
});

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });

function deployment(options: InstallOptions): Deployment {
  const labels = Object.entries(options.labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',');
  const { network, nodeProcess } = options;
  const arrangement =
    network !== undefined && nodeProcess === 'shared' ? withNodeProcess(network.fullMasquerade) : alone;
  const { role, probeHost, strategy } = arrangement;
  const ports = {
    ...arrangement.ports,
    ...(arrangement === alone && options.platform?.webhookPort && { webhook: options.platform.webhookPort }),
  };
  const host = probeHost === undefined ? {} : { host: probeHost };
  // A busy node keeps an agent waiting for seconds. To end it then is to have it start over, which takes more, and again it is ended.
  const probe = (path: string, timeoutSeconds: number) => ({
    httpGet: { path, port: 'health', ...host },
    timeoutSeconds,
  });
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: agentName,
      ...within,
      labels: { ...installLabel, ...controllerLabels },
      ...(options.profile !== undefined && { annotations: { [profileAnnotation]: options.profile } }),
    },
    spec: {
      replicas: options.replicas,
      strategy,
      selector: { matchLabels: { ...controllerLabels } },
      template: {
        metadata: {
          labels: { ...installLabel, ...controllerLabels, ...arrangement.podLabels },
          ...(options.joinStamp !== undefined && { annotations: { [joinStampAnnotation]: options.joinStamp } }),
        },
        spec: {
          serviceAccountName: agentName,
          terminationGracePeriodSeconds: 20,
          nodeSelector: { ...linuxOnly },
          ...arrangement.pod,
          affinity: {
            podAntiAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [
                {
                  weight: 100,
                  podAffinityTerm: {
                    topologyKey: 'kubernetes.io/hostname',
                    labelSelector: { matchLabels: { ...controllerLabels } },
                  },
                },
              ],
            },
          },
          containers: [
            {
              name: 'controller-manager',
              image: options.image,
              imagePullPolicy: 'IfNotPresent',
              // The agent reads its environment; the flags are where liqoctl looks for the same facts.
              args: [
                role,
                `--api-server-address-override=${options.apiServerUrl}`,
                ...(labels === '' ? [] : [`--cluster-labels=${labels}`]),
                '--tls-compatibility-mode=false',
              ],
              env: [
                { name: 'ISTHMUS_CLUSTER_ID', value: options.clusterId },
                { name: 'ISTHMUS_API_SERVER_URL', value: options.apiServerUrl },
                { name: 'ISTHMUS_SYSTEM_NAMESPACE', value: systemNamespace },
                { name: 'ISTHMUS_JOIN_SECRET', value: joinSecret },
                ...(labels === '' ? [] : [{ name: 'ISTHMUS_CLUSTER_LABELS', value: labels }]),
                ...(options.storage === undefined ? [{ name: 'ISTHMUS_STORAGE', value: 'false' }] : []),
                ...(options.credentials === undefined
                  ? []
                  : [{ name: credentialVariable, value: options.credentials }]),
                { name: 'ISTHMUS_WEBHOOK_PORT', value: String(ports.webhook) },
                { name: 'ISTHMUS_HEALTH_PORT', value: String(ports.health) },
                field('POD_NAME', 'metadata.name'),
                field('POD_NAMESPACE', 'metadata.namespace'),
                field('POD_IP', 'status.podIP'),
                field('NODE_NAME', 'spec.nodeName'),
                ...arrangement.env,
                ...(options.metrics === undefined ? [] : metricsEnv(options.metrics, ports.metrics, role === 'all')),
                ...(options.platform?.securityContextConstraints && network !== undefined
                  ? [{ name: 'ISTHMUS_GATEWAY_ROLE', value: gatewayConstraintsRole }]
                  : []),
              ],
              // Besides these: one port from 11250 on per virtual node, for its kubelet API.
              ports: [
                { name: 'webhook', containerPort: ports.webhook, protocol: 'TCP' },
                { name: 'health', containerPort: ports.health, protocol: 'TCP' },
                ...(options.metrics === undefined
                  ? []
                  : [{ name: metricsPort, containerPort: ports.metrics, protocol: 'TCP' as const }]),
              ],
              startupProbe: { ...probe('/healthz', 10), periodSeconds: 1, failureThreshold: 300 },
              livenessProbe: { ...probe('/healthz', 10), periodSeconds: 10, failureThreshold: 6 },
              readinessProbe: { ...probe('/readyz', 5), periodSeconds: 2, failureThreshold: 3 },
              resources: { requests: { cpu: '10m', memory: arrangement.memoryRequest }, limits: { memory: '512Mi' } },
              ...arrangement.container,
            },
          ],
        },
      },
    },
  };
}
