import {
  constants,
  createDecipheriv,
  generateKeyPairSync,
  type KeyObject,
  privateDecrypt,
  X509Certificate,
} from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import 'reflect-metadata';
import { X509CertificateGenerator } from '@peculiar/x509';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readSealingCertificate, sealSecret, sealValue } from './seal.ts';

let certificate: X509Certificate;
let key: KeyObject;
let dir = '';
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-seal-'));
  const algorithm = {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength: 2048,
    publicExponent: Uint8Array.of(1, 0, 1),
  };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const made = await X509CertificateGenerator.createSelfSigned({ name: 'CN=sealed-secrets', keys });
  certificate = new X509Certificate(made.toString('pem'));
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey));
  const { createPrivateKey } = await import('node:crypto');
  key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
});
afterAll(async () => await rm(dir, { recursive: true, force: true }));

/** As the controller in the cluster opens it. */
function opened(sealed: string, label: string): string {
  const bytes = Buffer.from(sealed, 'base64');
  const end = 2 + bytes.readUInt16BE(0);
  const session = privateDecrypt(
    { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256', oaepLabel: Buffer.from(label) },
    bytes.subarray(2, end),
  );
  const decipher = createDecipheriv('aes-256-gcm', session, Buffer.alloc(12)).setAuthTag(bytes.subarray(-16));
  return Buffer.concat([decipher.update(bytes.subarray(end, -16)), decipher.final()]).toString();
}

describe('a sealed value', () => {
  test('opens for its namespace and name', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 500 }), fc.stringMatching(/^[a-z]{1,9}\/[a-z]{1,9}$/), (value, label) => {
        expect(opened(sealValue(certificate, label, Buffer.from(value)), label)).toBe(Buffer.from(value).toString());
      }),
      { numRuns: 20 },
    );
  });

  test('opens for no other', () => {
    const sealed = sealValue(certificate, 'a/b', Buffer.from('x'));
    expect(() => opened(sealed, 'a/c')).toThrow();
  });
});

test('a sealed Secret keeps labels and annotations for the one that is made of it, and no value in clear', () => {
  const metadata = { name: 'gw-keys', namespace: 'liqo-tenant-milan', labels: { a: 'b' }, annotations: { c: 'd' } };
  const data = { privateKey: Buffer.from('secret').toString('base64') };
  const sealed = sealSecret(certificate, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data });
  expect(sealed).toMatchObject({
    apiVersion: 'bitnami.com/v1alpha1',
    kind: 'SealedSecret',
    metadata: { name: 'gw-keys', namespace: 'liqo-tenant-milan' },
    spec: { template: { metadata, type: 'Opaque' } },
  });
  expect(JSON.stringify(sealed)).not.toContain(data.privateKey);
  expect(opened(sealed.spec.encryptedData.privateKey ?? '', 'liqo-tenant-milan/gw-keys')).toBe('secret');
});

describe('a sealing certificate', () => {
  test('is read from its file', async () => {
    const file = path.join(dir, 'cert.pem');
    await writeFile(file, certificate.toString());
    expect((await readSealingCertificate(file, '--seal-consumer')).fingerprint256).toBe(certificate.fingerprint256);
  });

  test('that is none is refused, with the option', async () => {
    const file = path.join(dir, 'key.pem');
    await writeFile(file, generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }));
    await expect(readSealingCertificate(file, '--seal-consumer')).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('--seal-consumer'),
    });
  });
});
