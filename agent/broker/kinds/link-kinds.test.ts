/** What a broker may and may not have this cluster apply for a link. */
import { describe, expect, test } from 'vitest';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { manifestRejection as reject } from '../sync/manifest-check.ts';

const namespace = 'liqo-tenant-milan';
const apiVersion = 'networking.liqo.io/v1beta1';
const metadata = { name: 'milan', namespace, labels: { 'liqo.io/remote-cluster-id': 'milan' } };
const candidates = (text: string) => ({ 'networking.isthmus.dev/peer-candidates': text });
const template = (role: 'Server' | 'Client') => ({
  apiVersion,
  kind: `WgGateway${role}Template`,
  name: `wireguard-${role.toLowerCase()}`,
  namespace: 'liqo',
});
const configurationOf = (pod: unknown, external: unknown = ['10.70.0.0/16'], more: object = {}): KubeManifest => ({
  apiVersion,
  kind: 'Configuration',
  metadata,
  spec: { remote: { cidr: { pod, external, ...more } } },
});
const configuration = configurationOf(['10.200.0.0/16']);
const serverOf = (spec: object, more: object = {}): KubeManifest => ({
  apiVersion,
  kind: 'GatewayServer',
  metadata: { ...metadata, ...more },
  spec: {
    serverTemplateRef: template('Server'),
    mtu: 1340,
    endpoint: { port: 51_840, serviceType: 'NodePort' },
    ...spec,
  },
});
const server = serverOf({}, { annotations: candidates('["192.0.2.1:51840","gw.example:51840"]') });
const clientOf = (spec: object): KubeManifest => ({
  apiVersion,
  kind: 'GatewayClient',
  metadata: { ...metadata, annotations: candidates('["192.0.2.1:30000"]') },
  spec: {
    clientTemplateRef: template('Client'),
    mtu: 1340,
    endpoint: { addresses: ['192.0.2.1'], port: 30_000, protocol: 'UDP' },
    ...spec,
  },
});
const client = clientOf({});
const keyOf = (publicKey: unknown, more: object = {}): KubeManifest => ({
  apiVersion,
  kind: 'PublicKey',
  metadata: { ...metadata, labels: { ...metadata.labels, 'networking.liqo.io/gateway-resource': 'true', ...more } },
  spec: { publicKey },
});
const key = keyOf(Buffer.alloc(32, 7).toString('base64'));

const judge = (manifest: KubeManifest, role: DesiredSet['role'] = 'consumer', objects = [manifest]) =>
  reject(
    { peering: 'pe_1', role, peer: 'milan', revision: 1, state: 'present', peerDead: false, objects },
    manifest,
    'rome',
  )?.message;

describe.each(['consumer', 'provider'] as const)('a %s accepts', (role) => {
  test.each([configuration, server, client, key])('$kind', (manifest) => {
    expect(judge(manifest, role)).toBeUndefined();
  });
});

describe('refuses, naming the fault:', () => {
  test.each<{ what: string; manifest: KubeManifest; says: string }>([
    {
      what: 'the ranges of this cluster itself',
      manifest: { ...configuration, spec: { local: { cidr: { pod: ['10.0.0.0/16'], external: [] } } } },
      says: 'spec.local',
    },
    {
      what: 'a range that is none',
      manifest: configurationOf(['10.0.0.0/33']),
      says: 'spec.remote.cidr.pod is "10.0.0.0/33"',
    },
    { what: 'host bits', manifest: configurationOf(['10.0.0.1/16']), says: 'accepted is 10.0.0.0/16' },
    { what: 'all addresses', manifest: configurationOf(['0.0.0.0/0']), says: 'accepted is a prefix length of 8' },
    { what: 'loopback', manifest: configurationOf(['127.0.0.0/8']), says: 'loopback' },
    { what: 'the addresses of tunnels', manifest: configurationOf(['169.254.18.0/24']), says: 'link-local' },
    { what: 'a range that is no text', manifest: configurationOf([{ a: 1 }]), says: 'spec.remote.cidr.pod is' },
    { what: 'no ranges', manifest: configurationOf([]), says: 'accepted is a list of 1 to 32' },
    { what: 'too many ranges', manifest: configurationOf(Array(33).fill('10.0.0.0/16')), says: '1 to 32 ranges' },
    { what: 'no external range', manifest: configurationOf(['10.0.0.0/16'], []), says: 'spec.remote.cidr.external' },
    { what: 'other members', manifest: configurationOf(['10.0.0.0/16'], ['10.1.0.0/16'], { x: [] }), says: 'cidr.x' },
    {
      what: 'a name of its own',
      manifest: { ...server, metadata: { ...metadata, name: 'other' } },
      says: 'metadata.name',
    },
    {
      what: 'another namespace',
      manifest: { ...server, metadata: { ...metadata, namespace: 'kube-system' } },
      says: 'metadata.namespace is kube-system',
    },
    {
      what: "a third cluster's name",
      manifest: { ...key, metadata: { ...metadata, labels: { 'liqo.io/remote-cluster-id': 'naples' } } },
      says: 'is naples, accepted is milan',
    },
    {
      what: 'a Secret of its choice',
      manifest: serverOf({ secretRef: { name: 'admin-token' } }),
      says: 'spec.secretRef',
    },
    {
      what: 'annotations for the cloud',
      manifest: serverOf({ serviceAnnotations: { 'service.beta/x': 'y' } }),
      says: 'spec.serviceAnnotations',
    },
    {
      what: 'a template of its choice',
      manifest: serverOf({ serverTemplateRef: { ...template('Server'), name: 'mine' } }),
      says: 'spec.serverTemplateRef.name is "mine"; accepted is "wireguard-server"',
    },
    {
      what: 'a template elsewhere',
      manifest: serverOf({ serverTemplateRef: { ...template('Server'), namespace } }),
      says: 'spec.serverTemplateRef.namespace',
    },
    {
      what: 'more in the reference',
      manifest: clientOf({ clientTemplateRef: { ...template('Client'), fieldPath: 'x' } }),
      says: 'spec.clientTemplateRef.fieldPath',
    },
    {
      what: 'a size of the path in words',
      manifest: serverOf({}, { annotations: { 'networking.isthmus.dev/peer-mtu': '12; reboot' } }),
      says: 'annotation networking.isthmus.dev/peer-mtu is "12; reboot"; accepted is 576 to 65535',
    },
    { what: 'an MTU of 1279', manifest: serverOf({ mtu: 1279 }), says: 'spec.mtu is 1279; accepted is 1280 to 65535' },
    { what: 'an MTU in words', manifest: clientOf({ mtu: 'big' }), says: 'spec.mtu is "big"' },
    {
      what: 'a node port of its choice',
      manifest: serverOf({ endpoint: { port: 51_840, serviceType: 'NodePort', nodePort: 22 } }),
      says: 'spec.endpoint.nodePort',
    },
    {
      what: 'an unknown type of Service',
      manifest: serverOf({ endpoint: { port: 51_840, serviceType: 'ExternalName' } }),
      says: 'accepted is LoadBalancer, NodePort, ClusterIP',
    },
    { what: 'no port', manifest: serverOf({ endpoint: { serviceType: 'NodePort' } }), says: 'spec.endpoint.port' },
    {
      what: 'a host name that is a command',
      manifest: clientOf({ endpoint: { addresses: ['$(id)'], port: 1 } }),
      says: 'spec.endpoint.addresses has "$(id)"',
    },
    {
      what: 'no address to dial',
      manifest: clientOf({ endpoint: { addresses: [], port: 1 } }),
      says: 'spec.endpoint.addresses has "none"',
    },
    {
      what: 'TCP',
      manifest: clientOf({ endpoint: { addresses: ['192.0.2.1'], port: 1, protocol: 'TCP' } }),
      says: 'accepted is UDP',
    },
    {
      what: 'candidates that are no JSON',
      manifest: serverOf({}, { annotations: candidates('[') }),
      says: 'is no JSON; accepted is a JSON array',
    },
    {
      what: 'a candidate without port',
      manifest: serverOf({}, { annotations: candidates('["192.0.2.1"]') }),
      says: 'has "192.0.2.1"',
    },
    {
      what: 'too many candidates',
      manifest: serverOf({}, { annotations: candidates(JSON.stringify(Array(17).fill('192.0.2.1:1'))) }),
      says: 'at most 16',
    },
    {
      what: 'an annotation of ours',
      manifest: serverOf({}, { annotations: { 'networking.isthmus.dev/endpoint': '192.0.2.1:1' } }),
      says: 'networking.isthmus.dev/endpoint is not accepted',
    },
    { what: 'a key of 31 bytes', manifest: keyOf(Buffer.alloc(31, 7).toString('base64')), says: 'no WireGuard key' },
    { what: 'a key of zeros', manifest: keyOf(Buffer.alloc(32).toString('base64')), says: 'not all zero' },
    { what: 'a key that is no text', manifest: keyOf(7), says: 'no WireGuard key' },
    { what: 'a stray label', manifest: keyOf(key, { 'networking.liqo.io/active': 'true' }), says: 'liqo.io/active' },
    { what: 'a Connection', manifest: { apiVersion, kind: 'Connection', metadata }, says: 'may not apply' },
    { what: 'a template', manifest: { apiVersion, kind: 'WgGatewayServerTemplate', metadata }, says: 'may not apply' },
    { what: 'a status', manifest: { ...server, status: {} }, says: 'status is not accepted' },
  ])('$what', ({ manifest, says }) => {
    expect(judge(manifest)).toContain(says);
  });

  test('two links for one pair', () => {
    expect(judge(server, 'consumer', [server, client])).toContain('accepted is one link for a pair');
    expect(judge(client, 'consumer', [server, client])).toContain('accepted is one link for a pair');
  });
});
