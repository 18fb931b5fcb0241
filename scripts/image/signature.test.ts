import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { parseReference } from './reference.ts';
import { preAuthentication, readSigningKey } from './signature.ts';

const pem = (curve: string, passphrase?: string): string => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: curve });
  const cipher = passphrase === undefined ? {} : { cipher: 'aes-256-cbc', passphrase };
  return privateKey.export({ type: 'pkcs8', format: 'pem', ...cipher }).toString();
};

describe('a signing key', () => {
  test('may be encrypted', () => {
    expect(readSigningKey(pem('P-256', 'pw'), 'k', 'pw').asymmetricKeyType).toBe('ec');
  });

  test.each([
    { what: 'of another curve', text: pem('P-384'), says: 'of the kind secp384r1' },
    { what: 'without its password', text: pem('P-256', 'pw'), says: 'COSIGN_PASSWORD is not set' },
    { what: "in cosign's format", text: '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----', says: "cosign's own format" },
    { what: 'that is none', text: 'hello', says: 'holds no readable private key' },
  ])('$what is refused, with the command that makes one', ({ text, says }) => {
    expect(() => readSigningKey(text, 'k')).toThrow(says);
    expect(() => readSigningKey(text, 'k')).toThrow('openssl genpkey');
  });
});

// The example of the DSSE specification, with our type.
test('what an attestation signs has the length of each part', () => {
  expect(preAuthentication(Buffer.from('hello world')).toString()).toBe(
    'DSSEv1 28 application/vnd.in-toto+json 11 hello world',
  );
});

describe('the name of an image to push', () => {
  test.each([
    { text: 'registry.example/a/b:1', is: { registry: 'registry.example', repository: 'a/b', tag: '1' } },
    { text: 'localhost/a:v1.0_x', is: { registry: 'localhost', repository: 'a', tag: 'v1.0_x' } },
    { text: '10.0.0.1:5000/a-b/c__d:1', is: { registry: '10.0.0.1:5000', repository: 'a-b/c__d', tag: '1' } },
    { text: '[::1]:5000/a:1', is: { registry: '[::1]:5000', repository: 'a', tag: '1' } },
  ])('$text', ({ text, is }) => {
    expect(parseReference(text)).toEqual(is);
  });

  test.each([
    'agent:1',
    'team/agent:1',
    'registry.example/agent',
    'registry.example/Agent:1',
    'https://r.example/a:1',
    '',
  ])('%j is refused', (text) => {
    expect(() => parseReference(text)).toThrow('accepted: HOST[:PORT]/REPOSITORY:TAG');
  });
});
