/** However a sealed token is altered, only the cluster that it is for reads it, and only if it is what the provider sealed. */
import { createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { countOf } from '#test/harness/cases.ts';
import { fingerprintOf, generateClusterKeys, type OwnKeys } from './cluster-keys.ts';
import { keysOfSealedToken, openSealedToken, readSealedToken, sealToken } from './sealed-token.ts';
import { openingKeyOf, sealingKeyOf } from './sealing-keys.ts';

const account = 'system:serviceaccount:liqo-tenant-rome:isthmus-peer';
const endSeconds = 2_000_000_000;
const isFor = (user: string): boolean => user === account;
const tokenOf = (sub = account, exp = endSeconds): Promise<string> =>
  new SignJWT({ sub, exp }).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.alloc(32, 7));

const rome: OwnKeys = generateClusterKeys();
const publicKey = createPublicKey(rome.publicKey);
let token: string;
let sealed: string;
beforeAll(async () => {
  token = await tokenOf();
  sealed = await sealToken(token, publicKey, endSeconds * 1000);
});

describe('the keys that tokens are sealed to', () => {
  test('are one pair, which agrees with any other on a secret', () => {
    for (let i = 0; i < 20; i++) {
      const cluster = generateClusterKeys();
      const other = generateKeyPairSync('x25519');
      const [opening, sealing] = [
        openingKeyOf(createPrivateKey(cluster.privateKey)),
        sealingKeyOf(createPublicKey(cluster.publicKey)),
      ];
      expect(createPublicKey(opening).equals(sealing)).toBe(true);
      expect(diffieHellman({ privateKey: opening, publicKey: other.publicKey })).toEqual(
        diffieHellman({ privateKey: other.privateKey, publicKey: sealing }),
      );
    }
  });

  test.each(['rsa', 'ec'] as const)('are not made of a key of type %s, and the refusal says what to do', (type) => {
    const pair =
      type === 'rsa'
        ? generateKeyPairSync('rsa', { modulusLength: 2048 })
        : generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(() => sealingKeyOf(pair.publicKey)).toThrow(/isthmus rotate-key/);
    expect(() => openingKeyOf(pair.privateKey)).toThrow(/isthmus rotate-key/);
  });
});

describe('a sealed token', () => {
  test('is read by the cluster that it is for, and shows nothing of itself but key and end', async () => {
    expect(await openSealedToken(sealed, rome, { isFor })).toBe(token);
    expect(readSealedToken(sealed)).toEqual({ key: fingerprintOf(publicKey), endMs: endSeconds * 1000 });
    for (const part of token.split('.')) expect(sealed).not.toContain(part);
    expect(await sealToken(token, publicKey, endSeconds * 1000)).not.toBe(sealed);
  });

  test('is read by the former key while a new one takes over, and by no key that is forgotten', async () => {
    const next = { ...generateClusterKeys(), previous: rome };
    expect(await openSealedToken(sealed, next, { isFor })).toBe(token);
    expect(keysOfSealedToken(next, readSealedToken(sealed) ?? { key: '', endMs: 0 })).toBe(rome);
    await expect(openSealedToken(sealed, generateClusterKeys(), { isFor })).rejects.toThrow(
      /which this cluster does not have/,
    );
  });

  test('that was altered anywhere is refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.integer({ min: 1, max: 61 }), async (where, by) => {
        const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
        const at = where % sealed.length;
        const now = sealed[at] ?? '';
        if (now === '.') return;
        const next = letters[(letters.indexOf(now) + letters.length + by) % letters.length] ?? 'A';
        // Bits behind the last byte of a part mean nothing in base64url: the bytes are the same.
        const changed = sealed.slice(0, at) + next + sealed.slice(at + 1);
        const bytes = (text: string) => text.split('.').map((part) => Buffer.from(part, 'base64url').toString('hex'));
        if (bytes(changed).slice(1).join() === bytes(sealed).slice(1).join() && at > sealed.indexOf('.')) return;
        await expect(openSealedToken(changed, rome, { isFor })).rejects.toThrow(/authParams.sealedToken/);
      }),
      { numRuns: countOf(400, 100) },
    );
  });

  test('is no text that a stranger makes up', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.array(fc.base64String(), { minLength: 5, maxLength: 5 }).map((parts) => parts.join('.')),
        ),
        async (text) => {
          expect(readSealedToken(text)).toBeUndefined();
          await expect(openSealedToken(text, rome, { isFor })).rejects.toThrow(/is no token that Isthmus has sealed/);
        },
      ),
      { numRuns: countOf(400, 100) },
    );
  });

  test.each([
    ['of another account', () => tokenOf('system:serviceaccount:liqo-tenant-turin:isthmus-peer'), /another account/],
    ['with another end than it says', () => tokenOf(account, endSeconds - 1), /another end/],
    ['that is no token of an API server', async () => 'secret', /no token of an API server/],
  ])('sealed by a stranger with something in it %s is refused', async (_what, make, problem) => {
    const theirs = await sealToken(await make(), publicKey, endSeconds * 1000);
    const refusal = await openSealedToken(theirs, rome, { isFor }).catch((error: Error) => error);
    expect((refusal as Error).message).toMatch(problem);
    expect((refusal as Error).message).not.toContain(await make());
  });
});
