/**
 * The two templates that gateways are rendered from (docs/design/networking.md#how-are-gateways-rendered): one container that holds the tunnel and nothing
 * else. It has no token and no command: the controller picks wireguard-go or the kernel's device. Pure.
 */
import { apiVersionOf, type KubeObject } from '#shared/domain/kube-object.ts';
import { label, linuxOnly, systemNamespace, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { gatewayComponent, gatewayKeys, networkLabel, networkName } from '#shared/domain/network-keys.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { GatewayTemplateSpec } from '#shared/schema/liqo/rendered-gateway.ts';
import { installLabel } from './install-label.ts';

export interface TemplateOptions {
  readonly image: string;
  /** Absent: as many as the agent finds right for the nodes that there are. */
  readonly replicas?: number;
  readonly serviceAnnotations?: Readonly<Record<string, string>>;
  /** TCP, for load balancers that cannot check UDP. Absent: nothing listens. */
  readonly healthPort?: number;
}

/**
 * Beyond that wireguard-go collects its garbage. It keeps 64 KiB per packet on its way: measured with twelve transfers, 228 MB after 18 s and
 * growing without this, at most 75 MB with it.
 */
export const wireGuardGoMemory = { name: 'GOMEMLIMIT', value: '96MiB' } as const;

const port = '{{ .Spec.Endpoint.Port }}';
const podLabels = {
  [networkLabel.component]: gatewayComponent,
  [networkLabel.gatewayName]: '{{ .Name }}',
};
const metadata = {
  name: 'gw-{{ .Name }}',
  namespace: '{{ .Namespace }}',
  labels: { ...installLabel, [label.remoteClusterId]: '{{ .ClusterID }}' },
};

/** Accepts connections and closes them: a load balancer sees that the pod is up. */
const healthContainer = (image: string, port: number) => ({
  name: 'health',
  image,
  imagePullPolicy: 'IfNotPresent',
  command: [
    '/usr/local/bin/node',
    '--max-semi-space-size=1',
    '--single-threaded',
    '--eval',
    `require('net').createServer((socket) => { socket.on('error', () => socket.destroy()); socket.end(); }).listen(${port})`,
  ],
  env: [{ name: 'UV_THREADPOOL_SIZE', value: '1' }],
  ports: [{ name: 'health', containerPort: port, protocol: 'TCP' }],
  resources: { requests: { cpu: '5m', memory: '32Mi' }, limits: { memory: '96Mi' } },
  securityContext: {
    runAsNonRoot: true,
    runAsUser: 65_532,
    runAsGroup: 65_532,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
});

const deployment = ({ image, replicas, healthPort }: TemplateOptions) => ({
  metadata,
  spec: {
    ...(replicas === undefined ? {} : { replicas }),
    selector: { matchLabels: podLabels },
    template: {
      metadata: { labels: { ...installLabel, ...podLabels, [label.remoteClusterId]: '{{ .ClusterID }}' } },
      spec: {
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        terminationGracePeriodSeconds: 1,
        securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
        nodeSelector: { ...linuxOnly },
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: label.type, operator: 'NotIn', values: [virtualNodeType] }] },
              ],
            },
          },
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              {
                weight: 100,
                podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: podLabels } },
              },
            ],
          },
        },
        // A gateway of a node that is gone is replaced at once, not after the usual five minutes.
        tolerations: ['not-ready', 'unreachable'].map((state) => ({
          key: `node.kubernetes.io/${state}`,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 10,
        })),
        containers: [
          {
            name: 'wireguard',
            image,
            imagePullPolicy: 'IfNotPresent',
            env: [{ name: 'LOG_LEVEL', value: 'error' }, wireGuardGoMemory],
            resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { memory: '256Mi' } },
            securityContext: {
              runAsUser: 0,
              runAsGroup: 0,
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
            },
            volumeMounts: [
              { name: 'keys', mountPath: gatewayKeys.mountPath, readOnly: true },
              { name: 'control', mountPath: '/var/run/wireguard' },
              { name: 'tun', mountPath: '/dev/net/tun' },
            ],
          },
          ...(healthPort === undefined ? [] : [healthContainer(image, healthPort)]),
        ],
        volumes: [
          { name: 'keys', secret: { secretName: '{{ .SecretName }}', defaultMode: 0o400 } },
          { name: 'control', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
          { name: 'tun', hostPath: { path: '/dev/net/tun', type: 'CharDevice' } },
        ],
      },
    },
  },
});

const service = ({ serviceAnnotations }: TemplateOptions) => ({
  metadata: { ...metadata, ...(serviceAnnotations && { annotations: { ...serviceAnnotations } }) },
  spec: {
    type: '{{ .Spec.Endpoint.ServiceType }}',
    '?loadBalancerIP': '{{ .Spec.Endpoint.LoadBalancerIP }}',
    selector: { ...podLabels, [networkLabel.active]: 'true' },
    ports: [
      { name: 'wireguard', port, protocol: 'UDP', targetPort: port, '?nodePort': '{{ .Spec.Endpoint.NodePort }}' },
    ],
  },
});

export function gatewayTemplates(options: TemplateOptions): (KubeObject & { spec: GatewayTemplateSpec })[] {
  const template = (
    type: (typeof networkKinds)['wgGatewayServerTemplates' | 'wgGatewayClientTemplates'],
    name: string,
    kind: string,
    spec: Record<string, unknown>,
  ) => ({
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name, namespace: systemNamespace, labels: { ...installLabel, [networkLabel.gatewayTemplate]: 'true' } },
    spec: {
      objectKind: { apiVersion: apiVersionOf(networkKinds.wgGatewayServers), kind },
      template: { metadata: { labels: { [label.remoteClusterId]: '{{ .ClusterID }}' } }, spec },
    },
  });
  return [
    template(networkKinds.wgGatewayServerTemplates, networkName.serverTemplate, networkKinds.wgGatewayServers.kind, {
      service: service(options),
      deployment: deployment(options),
    }),
    template(networkKinds.wgGatewayClientTemplates, networkName.clientTemplate, networkKinds.wgGatewayClients.kind, {
      deployment: deployment(options),
    }),
  ];
}
