/** Callers of the proxy as a hostile network may send them: request lines and headers, made and damaged, against a model of those that pass. */
import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { signProxyToken } from '#agent/pki/proxy-token.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { countOf } from '#test/harness/cases.ts';
import { slowest } from '#test/harness/slowest.ts';
import { ProxyAuthorizer } from './authorizer.ts';

const runs = countOf(100_000, 600);
const rome = generateKeyPairSync('ed25519');
const mallory = generateKeyPairSync('ed25519');
const api = 'milan.example:6443';
const start = Date.UTC(2026, 0, 1);
const nonce = 'n'.repeat(24);

const claim = fc.record({
  iss: fc.constantFrom('rome', 'rome', 'rome', 'oslo', '__proto__', ''),
  aud: fc.constantFrom('milan', 'milan', 'milan', 'Milan', ''),
  iat: fc.constantFrom(start / 1000, start / 1000, start / 1000 - 3600, start / 1000 + 3600, 0.5),
  nonce: fc.constantFrom(nonce, nonce, nonce, 'of another run'),
});
const target = fc.oneof(
  fc.constantFrom(api, api, api, api.toUpperCase(), `${api}.`, `${api}/`, `user@${api}`, '127.0.0.1:22', '/', '*', ''),
  fc.string({ maxLength: 40 }),
);
const method = fc.constantFrom('CONNECT', 'CONNECT', 'CONNECT', 'GET', 'connect', 'POST');
const damage = fc.option(fc.tuple(fc.nat(), fc.constantFrom('A', 'B', '.', ' ', '=', '_', '')), { freq: 2 });
const scheme = fc.constantFrom('Bearer ', 'bearer ', 'Basic ', 'Bearer  ', '');

/** The last letter of a signature has bits that mean nothing: texts that differ in them alone are one token, with one `jti`, shown once. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => text.split('.'));
  const signatures = [a, b].map((parts) => Buffer.from(parts?.[2] ?? '', 'base64url').toString('hex'));
  const letters = /^[\w-]+$/.test(a?.[2] ?? '') && a?.length === 3;
  return letters && a[0] === b?.[0] && a[1] === b?.[1] && signatures[0] === signatures[1];
}

const consumers = new Map([['rome', [rome.publicKey]]]);
const authorizer = (clock: ManualClock) =>
  new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([api]),
    nonce,
    clock,
    keysOf: (consumer) => consumers.get(consumer) ?? [],
  });

test('of generated callers only one with an undamaged token of its own, for this run and this API server, passes', async () => {
  let serial = 0;
  const watch = slowest('callers of the proxy');
  await fc.assert(
    fc.asyncProperty(
      claim,
      fc.boolean(),
      method,
      target,
      scheme,
      damage,
      async (claims, ownKey, how, to, word, broken) => {
        serial += 1;
        const key = ownKey ? rome.privateKey : mallory.privateKey;
        const whole = await signProxyToken({ ...claims, jti: `jti-${serial}` }, key);
        const at = broken === null ? 0 : broken[0] % whole.length;
        const text = broken === null ? whole : `${whole.slice(0, at)}${broken[1]}${whole.slice(at + 1)}`;
        const caller = { method: how, target: to, authorization: `${word}${text}`, from: '192.0.2.1' };
        const proxy = authorizer(new ManualClock(start));
        const verdict = await watch(() => proxy.authorize(caller));
        const honest =
          ownKey &&
          isSame(text, whole) &&
          claims.iss === 'rome' &&
          claims.aud === 'milan' &&
          claims.iat === start / 1000 &&
          claims.nonce === nonce &&
          how === 'CONNECT' &&
          to.toLowerCase() === api &&
          /^bearer $/i.test(word);
        expect(verdict.pass).toBe(honest);
        if (verdict.pass) {
          expect(verdict).toMatchObject({ consumer: 'rome', purpose: 'api-server' });
          expect(await proxy.authorize(caller)).toMatchObject({ pass: false, status: 407 });
        } else {
          expect([403, 405, 407, 429]).toContain(verdict.status);
        }
      },
    ),
    { numRuns: runs },
  );
}, 900_000);

test('headers that are no token never pass', async () => {
  const watch = slowest('headers of the proxy');
  const header = fc.option(
    fc.oneof(
      fc.string({ maxLength: 200 }),
      fc.string().map((text) => `Bearer ${text}`),
    ),
    {
      nil: undefined,
    },
  );
  await fc.assert(
    fc.asyncProperty(header, method, target, async (authorization, how, to) => {
      const caller = { method: how, target: to, authorization, from: '192.0.2.1' };
      const verdict = await watch(() => authorizer(new ManualClock(start)).authorize(caller));
      expect(verdict.pass).toBe(false);
    }),
    { numRuns: runs },
  );
}, 900_000);
