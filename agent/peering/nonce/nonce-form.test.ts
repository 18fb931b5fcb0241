/** The nonce signer signs nothing that is worth anything elsewhere. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import fc from 'fast-check';
import { SignJWT } from 'jose';
import { describe, expect, test } from 'vitest';
import { controlPlaneSubject } from '#agent/model/peer-user.ts';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { fingerprintOf, generateClusterKeys, publicDerOf, verifyWith } from '#agent/pki/cluster-keys.ts';
import { readPem, toBase64 } from '#agent/pki/pem.ts';
import { signProxyToken } from '#agent/pki/proxy-token.ts';
import { signedNonceData } from './controllers.ts';
import { nonceFault, signNonce } from './nonce-form.ts';

const rome = generateClusterKeys();
const privateKey = createPrivateKey(rome.privateKey);
const ask = (text: string | Uint8Array) => () => signedNonceData({ nonce: toBase64(text) }, 'rome', rome);
const signingInput = (token: string) => token.slice(0, token.lastIndexOf('.'));

describe('a nonce that is the text of something else is not signed', () => {
  test('of a request to the broker', async () => {
    const claims = { iss: 'rome', sub: 'acme/rome', aud: 'https://broker.example', jti: 'j'.repeat(16) };
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', typ: 'JWT' }).sign(privateKey);
    expect(ask(signingInput(token))).toThrow('that are no nonce');
  });

  test('of a token for the proxy of a provider', async () => {
    const token = await signProxyToken({ iss: 'rome', aud: 'milan', iat: 1, jti: 'j', nonce: 'n' }, privateKey);
    expect(ask(signingInput(token))).toThrow('that are no nonce');
  });

  test('of the succession of a key', () => {
    const thief = createPublicKey(generateClusterKeys().publicKey);
    expect(ask(`isthmus.dev/key-succession\n${fingerprintOf(thief)}`)).toThrow('that are no nonce');
  });

  test('of a certificate request', () => {
    const der = readPem(buildCertificateRequest(controlPlaneSubject('rome'), rome.privateKey), 'CERTIFICATE REQUEST');
    // The signed part is the first element within the outer sequence.
    expect(ask(der)).toThrow('that are no nonce');
    expect(ask(der.subarray(3))).toThrow('that are no nonce');
    expect(ask(publicDerOf(rome.privateKey))).toThrow('that are no nonce');
  });

  test('nor is a nonce with one byte changed to what base64 does not have, cut, or with more behind it', () => {
    const nonce = Buffer.from(Buffer.alloc(64, 7).toString('base64'));
    fc.assert(
      fc.property(fc.nat(87), fc.nat(255), fc.stringMatching(/^[A-Za-z0-9+/=.\n]{1,40}$/), (at, byte, more) => {
        const letter = String.fromCharCode(byte);
        const stranger = Buffer.from(nonce);
        stranger[at] = /[A-Za-z0-9+/=]/.test(letter) ? 0x2e : byte;
        expect(ask(stranger)).toThrow('that are no nonce');
        expect(ask(nonce.subarray(0, at))).toThrow('that are no nonce');
        expect(ask(`${nonce}${more}`)).toThrow('that are no nonce');
      }),
    );
  });
});

test('the nonce of liqoctl is signed as it stands', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 64, maxLength: 64 }), (random) => {
      const nonce = Buffer.from(Buffer.from(random).toString('base64'));
      expect(nonceFault(nonce)).toBeUndefined();
      expect(verifyWith(createPublicKey(rome.publicKey), nonce, signNonce(rome.privateKey, nonce))).toBe(true);
    }),
  );
});
