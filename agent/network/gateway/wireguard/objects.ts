/** What a WireGuard gateway consists of in the cluster: pods, Service, keys, and the Connection by which it is watched. Pure. */
import { createHash } from 'node:crypto';
import type { Applied } from '#kube/model/types.ts';
import type { Deployment, Service } from '#shared/domain/core-kinds.ts';
import type { ObjectMeta, PodSpec, RoleBinding, Secret } from '#shared/domain/kube-object.ts';
import { apiVersionOf, type KubeObject, type OwnerReference } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import {
  fabricName,
  fabricTenantRole,
  gatewayComponent,
  gatewayKeys,
  isthmusNetworkAnnotation,
  networkLabel,
  networkName,
  networkPort,
} from '#shared/domain/network-keys.ts';
import type { Connection, ConnectionType } from '#shared/schema/liqo/connection.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { GatewayDeployment, ServiceTemplate } from '#shared/schema/liqo/rendered-gateway.ts';

export interface GatewayIdentity {
  /** Of the GatewayServer or GatewayClient, and of what was rendered for it. */
  readonly name: string;
  readonly namespace: string;
  /** Cluster ID. */
  readonly peer: string;
  readonly owner: OwnerReference;
}

/** `userspace`: the pod runs wireguard-go. `kernel`: it only holds the namespace in which the node process makes the device. */
export type WireGuardMode = 'userspace' | 'kernel';

type PodTemplate = NonNullable<NonNullable<Deployment['spec']>['template']>;
type Container = PodSpec['containers'][number];

const commands: Readonly<Record<WireGuardMode, string[]>> = {
  userspace: ['wireguard-go', '-f', 'liqo-tunnel'],
  kernel: ['sleep', 'infinity'],
};
export const modeOf = (deployment: Deployment | undefined): WireGuardMode | undefined => {
  const command = deployment?.spec?.template.spec?.containers[0]?.command?.join(' ');
  return (['userspace', 'kernel'] as const).find((mode) => commands[mode].join(' ') === command);
};

/** The longest name for which `gw-<name>` is still the name of a Service and every label value is valid. */
export const longestGatewayName = 60;

const gatewayLabels = ({ name, namespace, peer }: GatewayIdentity): Record<string, string> => ({
  [label.managed]: 'true',
  [label.remoteClusterId]: peer,
  [networkLabel.component]: gatewayComponent,
  [networkLabel.gatewayName]: name,
  [networkLabel.gatewayNamespace]: namespace,
});

const metadataOf = (
  identity: GatewayIdentity,
  template: Partial<ObjectMeta> | undefined,
): Applied<KubeObject>['metadata'] => ({
  name: networkName.gateway(identity.name),
  namespace: identity.namespace,
  labels: { ...template?.labels, ...gatewayLabels(identity) },
  ...(template?.annotations === undefined ? {} : { annotations: { ...template.annotations } }),
  ownerReferences: [identity.owner],
});

/** With a digest of itself, so that what a template no longer says is noticed. */
export function withDigest<T extends { metadata: { annotations?: Record<string, string> } }>(object: T): T {
  const digest = createHash('sha256').update(JSON.stringify(object)).digest('hex').slice(0, 16);
  const annotations = { ...object.metadata.annotations, [isthmusNetworkAnnotation.applied]: digest };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

export interface DeploymentInput {
  readonly identity: GatewayIdentity;
  readonly template: GatewayDeployment;
  /** Name of the Secret with the keys. */
  readonly secretName: string;
  readonly mode: WireGuardMode;
  /** Where the template does not say: see `usualReplicas`. */
  readonly replicas: number;
}

/** A second pod stands by where it can run on another node: the role moves in the time that a pod would take to start. */
export const usualReplicas = (nodes: number): number => Math.max(1, Math.min(2, nodes));

/**
 * What the template says, and what every gateway needs in any case: the labels by which its pods are found, the keys (read-only), no token of a
 * service account, no virtual node, replicas apart, an immediate replacement. Only the node agent sets which pod is active.
 */
export function buildGatewayDeployment({
  identity,
  template,
  secretName,
  mode,
  replicas,
}: DeploymentInput): Applied<Deployment> {
  const spec = template.spec;
  const own = { [networkLabel.component]: gatewayComponent, [networkLabel.gatewayName]: identity.name };
  const matchLabels = inactive({ ...spec?.selector?.matchLabels, ...own });
  const podLabels = inactive({ ...spec?.template?.metadata?.labels, ...matchLabels, ...gatewayLabels(identity) });
  const annotations = spec?.template?.metadata?.annotations;
  return withDigest({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadataOf(identity, template.metadata),
    spec: {
      replicas,
      revisionHistoryLimit: 1,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      ...spec,
      selector: { ...spec?.selector, matchLabels },
      template: {
        metadata: { labels: podLabels, ...(annotations === undefined ? {} : { annotations }) },
        spec: podSpec(spec?.template?.spec, own, secretName, mode),
      },
    },
  } as Applied<Deployment>);
}

const inactive = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => key !== networkLabel.active));

const keysVolume = 'isthmus-keys';
const seconds = 10;

function podSpec(
  given: PodTemplate['spec'],
  own: Record<string, string>,
  secretName: string,
  mode: WireGuardMode,
): PodSpec {
  const [first, ...others] = given?.containers ?? [];
  const hasKeys = first?.volumeMounts?.some(({ mountPath }) => mountPath === gatewayKeys.mountPath) ?? false;
  const container: Container = {
    ...(first ?? { name: 'wireguard' }),
    command: first?.command ?? commands[mode],
    volumeMounts: [
      ...(first?.volumeMounts ?? []),
      ...(hasKeys ? [] : [{ name: keysVolume, mountPath: gatewayKeys.mountPath, readOnly: true }]),
    ],
  };
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 1,
    affinity: apartFrom(own),
    // The default toleration of five minutes would leave the cluster without a link for that long after a node is lost.
    tolerations: ['not-ready', 'unreachable'].map((state) => ({
      key: `node.kubernetes.io/${state}`,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: seconds,
    })),
    ...given,
    containers: [container, ...others],
    volumes: [
      ...(given?.volumes ?? []),
      ...(hasKeys ? [] : [{ name: keysVolume, secret: { secretName, defaultMode: 0o400 } }]),
    ],
  };
}

const apartFrom = (matchLabels: Record<string, string>): NonNullable<PodSpec['affinity']> => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: label.type, operator: 'NotIn', values: [virtualNodeType] }] }],
    },
  },
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels } } },
    ],
  },
});

/** Packets go to the active pod alone. */
export function buildGatewayService(
  identity: GatewayIdentity,
  template: ServiceTemplate,
  extra: { readonly labels?: Record<string, string>; readonly annotations?: Record<string, string> } = {},
): Applied<Service> {
  const metadata = metadataOf(identity, {
    labels: { ...template.metadata?.labels, ...extra.labels },
    annotations: { ...template.metadata?.annotations, ...extra.annotations },
  });
  const selector = {
    ...template.spec?.selector,
    [networkLabel.component]: gatewayComponent,
    [networkLabel.gatewayName]: identity.name,
    [networkLabel.active]: 'true',
  };
  return withDigest({ apiVersion: 'v1', kind: 'Service', metadata, spec: { ...template.spec, selector } });
}

/** For a client that is to be dialled as well; the type comes from an annotation of the GatewayClient. */
export const clientServiceTemplate = (type: string): ServiceTemplate => ({
  spec: {
    type,
    ports: [{ name: 'wireguard', port: networkPort.wireGuard, protocol: 'UDP', targetPort: networkPort.wireGuard }],
  },
});

export function buildGatewaySecret(
  identity: GatewayIdentity,
  keys: { readonly privateKey: Uint8Array; readonly publicKey: Uint8Array },
): Secret {
  const { [networkLabel.component]: _, ...labels } = gatewayLabels(identity);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: networkName.gateway(identity.name),
      namespace: identity.namespace,
      labels: { ...labels, [networkLabel.gatewayResource]: 'true' },
      ownerReferences: [identity.owner],
    },
    type: 'Opaque',
    data: {
      [gatewayKeys.privateKey]: Buffer.from(keys.privateKey).toString('base64'),
      [gatewayKeys.publicKey]: Buffer.from(keys.publicKey).toString('base64'),
    },
  };
}

/** Lets the node processes say which pod is active: a Lease and a label, in this namespace. */
export const buildNodeAgentBinding = (identity: GatewayIdentity, systemNamespace: string): Applied<RoleBinding> => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: metadataOf(identity, undefined),
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: fabricTenantRole },
  subjects: [{ kind: 'ServiceAccount', name: fabricName, namespace: systemNamespace }],
});

export const buildConnection = (
  identity: GatewayIdentity,
  type: ConnectionType,
  rendered: { readonly apiVersion: string; readonly kind: string },
): Applied<Connection> => ({
  apiVersion: apiVersionOf(networkKinds.connections),
  kind: networkKinds.connections.kind,
  metadata: {
    name: networkName.gateway(identity.name),
    namespace: identity.namespace,
    labels: {
      [label.managed]: 'true',
      [label.remoteClusterId]: identity.peer,
      [networkLabel.gatewayName]: identity.name,
    },
    ownerReferences: [identity.owner],
  },
  spec: {
    type,
    gatewayRef: {
      apiVersion: rendered.apiVersion,
      kind: rendered.kind,
      name: identity.name,
      namespace: identity.namespace,
    },
  },
});
