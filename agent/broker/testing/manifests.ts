/** Manifests as a broker sends them to the cluster rome about its peer milan, one of each kind that it may apply. */

import { manifestRejection } from '#agent/broker/sync/manifest-check.ts';
import type { DesiredSet, KubeManifest, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';

const self = 'rome';
export const tenantNamespace = 'liqo-tenant-milan';
const authentication = 'authentication.liqo.io/v1beta1';
export const networking = 'networking.liqo.io/v1beta1';
const labels = { 'liqo.io/remote-cluster-id': 'milan', 'isthmus.dev/peering': 'pe_1' };
export const peerMetadata = { name: 'milan', namespace: tenantNamespace, labels };

export const desiredSet = (role: PeeringRole, objects: KubeManifest[] = []): DesiredSet => ({
  peering: 'pe_1',
  role,
  peer: 'milan',
  revision: 1,
  state: 'present',
  peerDead: false,
  objects,
});

/** Why the cluster refuses `manifest`; undefined: it does not. */
export const refusal = (manifest: KubeManifest, role: PeeringRole, objects = [manifest]): string | undefined =>
  manifestRejection(desiredSet(role, objects), manifest, self)?.message;

export const templateRef = (end: 'Server' | 'Client') => ({
  apiVersion: networking,
  kind: `WgGateway${end}Template`,
  name: `wireguard-${end.toLowerCase()}`,
  namespace: 'liqo',
});

/** By kind, then by role: a manifest with every label and annotation that is accepted, but for those of values of their own. */
export const manifests = {
  Namespace: (_role: PeeringRole): KubeManifest => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: tenantNamespace, labels: { ...labels, 'liqo.io/tenant-namespace': 'true' } },
  }),
  Secret: (role: PeeringRole): KubeManifest => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: role === 'consumer' ? 'liqo-signed-nonce' : 'liqo-nonce',
      namespace: tenantNamespace,
      labels: { ...labels, 'liqo.io/nonce': 'true' },
    },
    type: 'Opaque',
    data: { nonce: 'YQ==' },
  }),
  Tenant: (_role: PeeringRole): KubeManifest => ({
    apiVersion: authentication,
    kind: 'Tenant',
    metadata: peerMetadata,
    spec: { clusterID: 'milan', csr: 'YQ==' },
  }),
  Identity: (_role: PeeringRole): KubeManifest => ({
    apiVersion: authentication,
    kind: 'Identity',
    metadata: { ...peerMetadata, name: 'controlplane-milan' },
    spec: { clusterID: 'milan', type: 'ControlPlane' },
  }),
  ResourceSlice: (_role: PeeringRole): KubeManifest => ({
    apiVersion: authentication,
    kind: 'ResourceSlice',
    metadata: {
      ...peerMetadata,
      labels: { ...labels, 'liqo.io/replication': 'true', 'liqo.io/remoteID': 'milan' },
      annotations: { 'liqo.io/create-virtual-node': 'true' },
    },
    spec: { class: 'default', providerClusterID: 'milan', consumerClusterID: self },
  }),
  Configuration: (_role: PeeringRole): KubeManifest => ({
    apiVersion: networking,
    kind: 'Configuration',
    metadata: peerMetadata,
    spec: { remote: { cidr: { pod: ['10.200.0.0/16'], external: ['10.70.0.0/16'] } } },
  }),
  GatewayServer: (_role: PeeringRole): KubeManifest => ({
    apiVersion: networking,
    kind: 'GatewayServer',
    metadata: {
      ...peerMetadata,
      annotations: { 'networking.isthmus.dev/peer-candidates': '["192.0.2.1:51840","gw.example:51840"]' },
    },
    spec: {
      serverTemplateRef: templateRef('Server'),
      mtu: 1340,
      endpoint: { port: 51_840, serviceType: 'NodePort' },
    },
  }),
  GatewayClient: (_role: PeeringRole): KubeManifest => ({
    apiVersion: networking,
    kind: 'GatewayClient',
    metadata: { ...peerMetadata, annotations: { 'networking.isthmus.dev/peer-candidates': '["192.0.2.1:30000"]' } },
    spec: {
      clientTemplateRef: templateRef('Client'),
      mtu: 1340,
      endpoint: { addresses: ['192.0.2.1'], port: 30_000, protocol: 'UDP' },
    },
  }),
  PublicKey: (_role: PeeringRole): KubeManifest => ({
    apiVersion: networking,
    kind: 'PublicKey',
    metadata: { ...peerMetadata, labels: { ...labels, 'networking.liqo.io/gateway-resource': 'true' } },
    spec: { publicKey: Buffer.alloc(32, 7).toString('base64') },
  }),
} as const;
