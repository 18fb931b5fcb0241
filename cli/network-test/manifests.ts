/** The objects of a network test: everything is in one namespace, which takes all of it along. Pure. */
import type { DaemonSet, EndpointSlice, Service } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { probeNameEnv, probePort, probeProgram } from '#shared/domain/network-probe.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';

export const testNamespace = 'isthmus-network-test';
const testLabels = { 'app.kubernetes.io/part-of': 'isthmus-network-test' } as const;
/** `pod` or `host`: the network that a test pod is in. */
export const networkLabelKey = 'network-test.isthmus.dev/network';
export const container = 'probe';
export const serviceName = 'peer';
export const externalName = 'external';

const meta = (name: string) => ({ name, namespace: testNamespace, labels: { ...testLabels } });

export const namespaceManifest = (): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: testNamespace,
    labels: {
      ...testLabels,
      // Some of the pods are in their node's network, to call as a node does.
      'pod-security.kubernetes.io/enforce': 'privileged',
    },
  },
});

/** One pod on every node, in the pods' network or in the node's. */
export const daemonSet = (image: string, network: 'pod' | 'host'): DaemonSet => {
  const labels = { ...testLabels, [networkLabelKey]: network };
  const host = network === 'host';
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: meta(network),
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          hostNetwork: host,
          terminationGracePeriodSeconds: 1,
          tolerations: [{ operator: 'Exists' }],
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  { matchExpressions: [{ key: label.type, operator: 'NotIn', values: [virtualNodeType] }] },
                ],
              },
            },
          },
          containers: [
            {
              name: container,
              image,
              // The node process runs from it on every node, so that it is there.
              imagePullPolicy: 'IfNotPresent',
              command: ['/usr/local/bin/node', probeProgram, host ? 'wait' : 'serve'],
              env: [{ name: probeNameEnv, valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
              resources: { requests: { cpu: '5m', memory: '32Mi' }, limits: { memory: '256Mi' } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                // Root and raw sockets only where pings are sent from.
                capabilities: { drop: ['ALL'], ...(host && { add: ['NET_RAW'] }) },
                ...(host ? { runAsUser: 0 } : { runAsNonRoot: true, runAsUser: 65_532 }),
              },
            },
          ],
        },
      },
    },
  };
};

/** A Service without a selector: what is behind it are the peer's pods, by the addresses that this cluster has for them. */
export const peerService = (nodePort: boolean, addresses: readonly string[]): readonly [Service, EndpointSlice] => [
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta(serviceName),
    spec: { type: nodePort ? 'NodePort' : 'ClusterIP', ports: [{ name: 'http', port: probePort, protocol: 'TCP' }] },
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...meta(serviceName), labels: { ...testLabels, 'kubernetes.io/service-name': serviceName } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: probePort, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  },
];

/** Hidden behind the node: whether the host has a way back to the peer is not what is tested. */
export const externalIp = (ip: string): Ip => ({
  apiVersion: 'ipam.liqo.io/v1alpha1',
  kind: 'IP',
  metadata: meta(externalName),
  spec: { ip, masquerade: true },
});

export const isOurs = ({ metadata }: KubeObject): boolean =>
  metadata.labels?.['app.kubernetes.io/part-of'] === testLabels['app.kubernetes.io/part-of'];
