import { describe, expect, test } from 'vitest';
import { manifests, peerMetadata as metadata, refusal } from '#agent/broker/testing/manifests.ts';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';

const key = manifests.PublicKey('consumer');
const keyOf = (publicKey: unknown, more: object = {}): KubeManifest => ({
  ...key,
  metadata: { ...metadata, labels: { ...key.metadata.labels, ...more } },
  spec: { publicKey },
});

describe('refuses, naming the fault:', () => {
  test.each<{ what: string; manifest: KubeManifest; says: string }>([
    {
      what: "a third cluster's name",
      manifest: { ...key, metadata: { ...metadata, labels: { 'liqo.io/remote-cluster-id': 'naples' } } },
      says: 'is naples, accepted is milan',
    },
    { what: 'a key of 31 bytes', manifest: keyOf(Buffer.alloc(31, 7).toString('base64')), says: 'no WireGuard key' },
    { what: 'a key of zeros', manifest: keyOf(Buffer.alloc(32).toString('base64')), says: 'not all zero' },
    { what: 'a key that is no text', manifest: keyOf(7), says: 'no WireGuard key' },
    { what: 'a stray label', manifest: keyOf(key, { 'networking.liqo.io/active': 'true' }), says: 'liqo.io/active' },
  ])('$what', ({ manifest, says }) => {
    expect(refusal(manifest, 'consumer')).toContain(says);
  });
});
