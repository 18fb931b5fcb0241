/** GatewayServer and GatewayClient: what a broker may ask of the two ends of a link, and what it learns of them. */
import { describe, expect, test } from 'vitest';
import {
  networking as apiVersion,
  manifests,
  peerMetadata as metadata,
  tenantNamespace as namespace,
  refusal,
  templateRef as template,
} from '#agent/broker/testing/manifests.ts';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { observedObject } from '../sync/observed-objects.ts';

const candidates = (text: string) => ({ 'networking.isthmus.dev/peer-candidates': text });
const server = manifests.GatewayServer('consumer');
const serverOf = (spec: object, more: object = {}): KubeManifest => ({
  ...server,
  metadata: { ...metadata, ...more },
  spec: { ...(server.spec as object), ...spec },
});
const client = manifests.GatewayClient('consumer');
const clientOf = (spec: object): KubeManifest => ({ ...client, spec: { ...(client.spec as object), ...spec } });

describe('refuses, naming the fault:', () => {
  test.each<{ what: string; manifest: KubeManifest; says: string }>([
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
    { what: 'a status', manifest: { ...server, status: {} }, says: 'status is not accepted' },
    { what: 'a Connection', manifest: { apiVersion, kind: 'Connection', metadata }, says: 'may not apply' },
    { what: 'a template', manifest: { apiVersion, kind: 'WgGatewayServerTemplate', metadata }, says: 'may not apply' },
  ])('$what', ({ manifest, says }) => {
    expect(refusal(manifest, 'consumer')).toContain(says);
  });

  test('two links for one pair', () => {
    for (const manifest of [server, client])
      expect(refusal(manifest, 'consumer', [server, client])).toContain('accepted is one link for a pair');
  });
});

test('a report of a gateway says where it can be reached, not on which node it runs', () => {
  const gateway = {
    apiVersion,
    kind: 'GatewayServer',
    metadata: {
      ...metadata,
      uid: 'u1',
      annotations: { 'networking.isthmus.dev/candidates': '["192.0.2.1:30000"]', x: 'y' },
    },
    status: {
      endpoint: { addresses: ['192.0.2.1'], port: 30_000 },
      internalEndpoint: { ip: '10.0.0.1', node: 'inner' },
      secretRef: { name: 'inner' },
    },
  };
  expect(observedObject('GatewayServer', apiVersion, gateway).data).toEqual({
    endpoint: { addresses: ['192.0.2.1'], port: 30_000 },
    candidates: ['192.0.2.1:30000'],
  });
  const broken = {
    ...gateway,
    metadata: { ...metadata, uid: 'u1', annotations: { 'networking.isthmus.dev/candidates': '{' } },
  };
  expect(observedObject('GatewayServer', apiVersion, broken).data).toMatchObject({ candidates: [] });
});
