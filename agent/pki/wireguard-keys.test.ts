import { expect, test } from 'vitest';
import { createWireGuardKeys, publicKeyOf } from './wireguard-keys.ts';

test('the public key of a private key is the one that `wg pubkey` prints', () => {
  const privateKey = Buffer.from('4Em/q9ifmwR5xcQucD2LsYfcynFBOZBPcZQ6TDZ9flE=', 'base64');
  expect(Buffer.from(publicKeyOf(privateKey)).toString('base64')).toBe('VWN71kUzhw5kEy3r9AiGXx/ScBcGfOg9OpI3aO2AS38=');
});

test('a new pair is 32 bytes each, belongs together and differs from the next', () => {
  const keys = createWireGuardKeys();
  expect([keys.privateKey.length, keys.publicKey.length]).toEqual([32, 32]);
  expect(Buffer.from(publicKeyOf(keys.privateKey))).toEqual(Buffer.from(keys.publicKey));
  expect(Buffer.from(createWireGuardKeys().privateKey)).not.toEqual(Buffer.from(keys.privateKey));
});
