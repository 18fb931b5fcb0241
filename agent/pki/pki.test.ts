/** Certificate requests and keys against an independent implementation, and against damage. */
import 'reflect-metadata';
import { generateKeyPairSync, type webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isNewer, lifetimeOf, renewAtMs } from './certificate.ts';
import {
  buildCertificateRequest,
  carriesKeyOf,
  checkCertificateRequest,
  readCertificateRequest,
} from './certificate-request.ts';
import { generateClusterKeys, publicDerOf, publicKeyDer, readPublicKey, signWith, verifyWith } from './cluster-keys.ts';
import { readPem, writePem } from './pem.ts';

const keys = generateClusterKeys();
const dnsLabel = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$/);

describe('certificate requests', () => {
  test('what we build, another implementation reads and verifies', async () => {
    await fc.assert(
      fc.asyncProperty(dnsLabel, dnsLabel, async (commonName, organization) => {
        const pem = buildCertificateRequest({ commonName, organization }, keys.privateKey);
        const read = new x509.Pkcs10CertificateRequest(pem);
        expect(read.subjectName.getField('CN')).toEqual([commonName]);
        expect(read.subjectName.getField('O')).toEqual([organization]);
        expect(await read.verify()).toBe(true);
        expect(readCertificateRequest(pem)).toMatchObject({ commonName, organization });
      }),
      { numRuns: 40 },
    );
  });

  test.each([
    ['Ed25519', { name: 'Ed25519' }, { name: 'Ed25519' }],
    ['ECDSA', { name: 'ECDSA', namedCurve: 'P-256' }, { name: 'ECDSA', hash: 'SHA-256' }],
    [
      'RSA',
      { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', publicExponent: new Uint8Array([1, 0, 1]), modulusLength: 2048 },
      { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
    ],
  ])('reads a request with a %s key made elsewhere', async (_name, generate, signingAlgorithm) => {
    const pair = (await crypto.subtle.generateKey(generate, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
    const request = await x509.Pkcs10CertificateRequestGenerator.create({
      name: [{ O: ['liqo.io'] }, { CN: ['rome'] }],
      keys: pair,
      signingAlgorithm,
    });
    const read = readCertificateRequest(`${request.toString('pem')}\n`);
    expect(read).toMatchObject({ commonName: 'rome', organization: 'liqo.io' });
  });

  test.each([
    ['a second organization', [{ O: ['liqo.io'] }, { O: ['system:masters'] }, { CN: ['rome'] }]],
    ['a second value in one part', [{ O: ['liqo.io'], CN: ['rome'] }]],
    ['no organization', [{ CN: ['rome'] }]],
    ['a country', [{ C: ['IT'] }, { O: ['liqo.io'] }, { CN: ['rome'] }]],
  ])('refuses a subject with %s', async (_name, name) => {
    const pair = (await crypto.subtle.generateKey({ name: 'Ed25519' }, true, [
      'sign',
      'verify',
    ])) as webcrypto.CryptoKeyPair;
    const request = await x509.Pkcs10CertificateRequestGenerator.create({
      name,
      keys: pair,
      signingAlgorithm: { name: 'Ed25519' },
    });
    expect(() => readCertificateRequest(request.toString('pem'))).toThrow(/accepted is/);
  });

  test('a request in which any one byte was changed is refused or says the same', () => {
    const pem = buildCertificateRequest({ commonName: 'rome', organization: 'liqo.io' }, keys.privateKey);
    const der = Buffer.from(readPem(pem, 'CERTIFICATE REQUEST'));
    fc.assert(
      fc.property(fc.nat(der.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const damaged = Buffer.from(der);
        damaged[at] = (damaged[at] ?? 0) ^ flip;
        expect(() => readCertificateRequest(writePem('CERTIFICATE REQUEST', damaged))).toThrow();
      }),
      { numRuns: 400 },
    );
  });

  test('refuses the wrong user, the wrong group and the wrong key, and names what it accepts', () => {
    const pem = buildCertificateRequest({ commonName: 'rome', organization: 'liqo.io' }, keys.privateKey);
    const own = readPublicKey(Buffer.from(keys.publicKey));
    const other = readPublicKey(Buffer.from(generateClusterKeys().publicKey));
    expect(() => checkCertificateRequest(pem, { commonName: 'rome', organization: 'liqo.io' }, own)).not.toThrow();
    expect(() => checkCertificateRequest(pem, { commonName: 'milan', organization: 'liqo.io' }, own)).toThrow(
      /CN "rome"; accepted is "milan"/,
    );
    expect(() => checkCertificateRequest(pem, { commonName: 'rome', organization: 'x' }, own)).toThrow(
      /O "liqo.io"; accepted is "x"/,
    );
    expect(() => checkCertificateRequest(pem, { commonName: 'rome', organization: 'liqo.io' }, other)).toThrow(
      /another key/,
    );
  });

  test('knows its own key in a request', () => {
    const pem = buildCertificateRequest({ commonName: 'rome', organization: 'liqo.io' }, keys.privateKey);
    expect(carriesKeyOf(pem, keys.privateKey)).toBe(true);
    expect(carriesKeyOf(pem, generateClusterKeys().privateKey)).toBe(false);
    expect(carriesKeyOf('nonsense', keys.privateKey)).toBe(false);
  });
});

describe('keys', () => {
  test('a signature verifies over its bytes and over no others', () => {
    const key = readPublicKey(Buffer.from(keys.publicKey));
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.uint8Array({ maxLength: 100 }), (data, other) => {
        const signature = signWith(keys.privateKey, data);
        expect(verifyWith(key, data, signature)).toBe(true);
        expect(verifyWith(key, other, signature)).toBe(Buffer.from(data).equals(Buffer.from(other)));
      }),
    );
    expect(verifyWith(key, Buffer.from('x'), Buffer.from('short'))).toBe(false);
  });

  test('reads a public key as PEM, and as the 32 raw bytes of old liqoctl', () => {
    const der = Buffer.from(publicDerOf(keys.privateKey));
    expect(Buffer.from(publicKeyDer(readPublicKey(der.subarray(-32))))).toEqual(der);
    expect(Buffer.from(publicKeyDer(readPublicKey(Buffer.from(keys.publicKey))))).toEqual(der);
    expect(() => readPublicKey(Buffer.from('nonsense'))).toThrow(/PUBLIC KEY/);
  });

  test('verifies what RSA and ECDSA clusters of Liqo sign', () => {
    for (const pair of [
      generateKeyPairSync('rsa', { modulusLength: 2048 }),
      generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    ]) {
      const nonce = Buffer.from('nonce');
      const signature = signWith(pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), nonce);
      const key = readPublicKey(Buffer.from(pair.publicKey.export({ type: 'spki', format: 'pem' }).toString()));
      expect(verifyWith(key, nonce, signature)).toBe(true);
      expect(verifyWith(key, Buffer.from('other'), signature)).toBe(false);
    }
  });
});

describe('lifetime', () => {
  const certificate = async (hours: number): Promise<string> => {
    const pair = (await crypto.subtle.generateKey({ name: 'Ed25519' }, true, [
      'sign',
      'verify',
    ])) as webcrypto.CryptoKeyPair;
    const made = await x509.X509CertificateGenerator.createSelfSigned({
      name: 'CN=rome',
      notBefore: new Date(Date.UTC(2026, 0, 1)),
      notAfter: new Date(Date.UTC(2026, 0, 1) + hours * 3_600_000),
      keys: pair,
      signingAlgorithm: { name: 'Ed25519' },
    });
    return made.toString('pem');
  };

  test('is renewed after two thirds, of the shorter of what was asked and what was given', async () => {
    const pem = await certificate(3);
    const start = Date.UTC(2026, 0, 1);
    expect(lifetimeOf(pem)).toEqual({ notBeforeMs: start, notAfterMs: start + 3 * 3_600_000 });
    expect(renewAtMs(pem, undefined, 1)).toBe(start + 2 * 3_600_000);
    expect(renewAtMs(pem, 1_000, 3_600_000)).toBe(1_000 + 2_400_000);
    expect(renewAtMs(pem, 1_000, 9 * 3_600_000)).toBe(1_000 + 2 * 3_600_000);
  });

  test('what a signer dates back does not make a short certificate last longer', async () => {
    const pem = await certificate(1);
    const { notBeforeMs, notAfterMs } = lifetimeOf(pem);
    const issuedAtMs = notAfterMs - 600_000;
    expect(renewAtMs(pem, issuedAtMs, 9 * 3_600_000)).toBe(issuedAtMs + 400_000);
    // A clock that is ahead of the signer's by about the whole life: not every second.
    expect(renewAtMs(pem, notAfterMs - 1_000, 9 * 3_600_000)).toBe(notAfterMs - 1_000 + 2_400_000);
    expect(renewAtMs(pem, notBeforeMs - 86_400_000, 9 * 3_600_000)).toBe(notBeforeMs - 86_400_000 + 2_400_000);
  });

  test('the one that ends later is newer', async () => {
    const [short, long] = [await certificate(1), await certificate(2)];
    expect(isNewer(long, short)).toBe(true);
    expect(isNewer(short, long)).toBe(false);
    expect(isNewer(short, short)).toBe(false);
    expect(isNewer(short, undefined)).toBe(true);
  });
});
