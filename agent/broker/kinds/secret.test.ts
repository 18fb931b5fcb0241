import { expect, test } from 'vitest';
import { manifests, refusal } from '#agent/broker/testing/manifests.ts';
import { observedObject } from '../sync/observed-objects.ts';

const metadata = { name: 'gw-milan', namespace: 'liqo-tenant-milan', uid: 'u1' };
const secret = manifests.Secret('provider');

test('refuses a further key in the Secret', () => {
  expect(refusal({ ...secret, data: { nonce: 'YQ==', token: 'YQ==' } }, 'provider')).toContain('data.token');
});

test('a report of a gateway’s Secret has the public key and nothing else', () => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    data: { privateKey: 'cHJpdmF0ZQ==', publicKey: 'cHVibGlj', other: 'b3RoZXI=' },
  };
  expect(observedObject('Secret', 'v1', secret).data).toEqual({ publicKey: 'cHVibGlj' });
});
