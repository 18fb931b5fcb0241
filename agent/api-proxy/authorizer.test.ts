import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ProxyClaims, proxyTokens, readProxyToken, signProxyToken } from '#agent/pki/proxy-token.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { ProxyAuthorizer } from './authorizer.ts';
import { TokenBuckets } from './token-buckets.ts';

const rome = generateKeyPairSync('ed25519');
const mallory = generateKeyPairSync('ed25519');
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const nonce = 'n'.repeat(24);
const target = 'milan.example:6443';
const start = Date.UTC(2026, 0, 1);

function fixture() {
  const clock = new ManualClock(start);
  const users = new Map([
    ['rome', [mallory.publicKey, rome.publicKey]],
    ['oslo', [rsa.publicKey]],
  ]);
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([target]),
    nonce,
    clock,
    keysOf: (consumer) => (consumer === 'rome' ? [rome.publicKey] : (users.get(consumer) ?? [])),
  });
  let calls = 0;
  const ask = (authorization: string | undefined, to = target, method = 'CONNECT') =>
    authorizer.authorize({ method, target: to, authorization, from: `192.0.2.${calls++ % 250}` });
  return { authorizer, clock, ask };
}

let serial = 0;
const claims = (change: Partial<ProxyClaims> = {}): Omit<ProxyClaims, 'exp'> => ({
  iss: 'rome',
  aud: 'milan',
  iat: start / 1000,
  jti: `jti-${++serial}`,
  nonce,
  ...change,
});
const token = (change: Partial<ProxyClaims> = {}, key = rome.privateKey) =>
  `Bearer ${signProxyToken(claims(change), key)}`;
const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
function crafted(header: object, body: object, signature: (signed: string) => Uint8Array): string {
  const signed = `${encoded(header)}.${encoded(body)}`;
  return `Bearer ${signed}.${Buffer.from(signature(signed)).toString('base64url')}`;
}
const byRome = (signed: string) => sign(null, Buffer.from(signed), rome.privateKey);
const eddsa = { alg: 'EdDSA', typ: 'JWT' };
const lasting = { ...claims(), exp: start / 1000 + 60 };

test('a consumer passes with a fresh token, and the same token never again', () => {
  const { ask } = fixture();
  const once = token();
  expect(ask(once)).toEqual({ pass: true, consumer: 'rome', purpose: 'api-server' });
  expect(ask(once)).toMatchObject({ pass: false, status: 407, reason: 'the token was shown before' });
  expect(ask(token())).toMatchObject({ pass: true });
});

test('what the agent signs is what the gate takes, each time another one', () => {
  const { ask } = fixture();
  const next = proxyTokens({
    consumer: 'rome',
    privateKey: rome.privateKey,
    nowMs: () => start,
    newId: () => `t${serial++}`,
  });
  const [one, two] = [next('milan', nonce), next('milan', nonce)];
  expect(one).not.toBe(two);
  for (const each of [one, two]) expect(ask(`Bearer ${each}`)).toMatchObject({ pass: true });
});

test.each([
  { what: 'no token', authorization: () => undefined, status: 407, reason: 'missing' },
  { what: 'a password', authorization: () => 'Basic cm9tZTpzZWNyZXQ=', status: 407, reason: 'missing' },
  { what: 'no JWT', authorization: () => 'Bearer hello', status: 407, reason: 'no token' },
  { what: 'a token of a stranger', authorization: () => token({ iss: 'ghent' }), status: 407, reason: 'not signed' },
  {
    what: 'a token by another key',
    authorization: () => token({}, mallory.privateKey),
    status: 407,
    reason: 'not signed',
  },
  {
    what: 'a token for another provider',
    authorization: () => token({ aud: 'turin' }),
    status: 407,
    reason: 'another cluster',
  },
  { what: 'a token for another run', authorization: () => token({ nonce: 'x' }), status: 407, reason: 'another run' },
  { what: 'an expired token', authorization: () => token({ iat: start / 1000 - 91 }), status: 407, reason: 'expired' },
  {
    what: 'a token of tomorrow',
    authorization: () => token({ iat: start / 1000 + 31 }),
    status: 407,
    reason: 'future',
  },
  {
    what: 'a token that lives an hour',
    authorization: () => crafted(eddsa, { ...claims(), exp: start / 1000 + 3600 }, byRome),
    status: 407,
    reason: 'too long',
  },
  {
    what: 'a token without signature',
    authorization: () => crafted({ alg: 'none' }, lasting, () => new Uint8Array(1)),
    status: 407,
    reason: 'no token',
  },
  {
    what: 'a token by the public key as a secret',
    authorization: () =>
      crafted({ alg: 'HS256' }, lasting, (signed) =>
        createHmac('sha256', rome.publicKey.export({ type: 'spki', format: 'pem' }))
          .update(signed)
          .digest(),
      ),
    status: 407,
    reason: 'no token',
  },
  {
    what: 'a token with critical extensions',
    authorization: () => crafted({ ...eddsa, crit: ['b64'] }, lasting, byRome),
    status: 407,
    reason: 'no token',
  },
  {
    what: 'a token that is huge',
    authorization: () => token({ jti: 'j'.repeat(3000) }),
    status: 407,
    reason: 'no token',
  },
  {
    what: 'a token by a key of another kind',
    authorization: () => token({ iss: 'oslo' }),
    status: 407,
    reason: 'not signed',
  },
])('$what is refused', ({ authorization, status, reason }) => {
  expect(fixture().ask(authorization())).toMatchObject({
    pass: false,
    status,
    reason: expect.stringContaining(reason),
  });
});

test('clocks may be half a minute apart', () => {
  for (const iat of [start / 1000 - 90, start / 1000 + 30])
    expect(fixture().ask(token({ iat }))).toMatchObject({ pass: true });
});

test.each([
  'milan.example:443',
  'milan.example',
  '10.0.0.1:6443',
  '127.0.0.1:8080',
  'milan.example:6443@evil.example:1',
  'https://milan.example:6443/',
  `${target}\u0000`,
  '',
])('with a good token nothing but the API server is reached: %j', (to) => {
  expect(fixture().ask(token(), to)).toMatchObject({ pass: false, status: 403, consumer: 'rome' });
});

test('a consumer that may only fetch a certificate reaches no API server', () => {
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([target]),
    nonce,
    clock: new ManualClock(start),
    keysOf: (_consumer, purpose) => (purpose === 'certificate' ? [rome.publicKey] : []),
  });
  const ask = (method: string, to: string) =>
    authorizer.authorize({ method, target: to, authorization: token(), from: '192.0.2.1' });
  expect(ask('GET', '/certificate')).toEqual({ pass: true, consumer: 'rome', purpose: 'certificate' });
  expect(ask('CONNECT', target)).toMatchObject({ pass: false, status: 407 });
  expect(ask('CONNECT', '/certificate')).toMatchObject({ pass: false, status: 407 });
  for (const to of ['/', '/certificate/', '/certificate?of=oslo', 'http://milan/certificate'])
    expect(ask('GET', to)).toMatchObject({ pass: false, status: 405 });
});

test('letters of host names count for nothing, methods other than CONNECT go nowhere', () => {
  expect(fixture().ask(token(), 'MILAN.example:6443')).toMatchObject({ pass: true });
  for (const method of ['GET', 'POST', 'connect', 'OPTIONS'])
    expect(fixture().ask(token(), target, method)).toMatchObject({ pass: false, status: 405 });
});

test('any change to a token makes it worthless, and nothing that is refused is remembered', () => {
  const { ask, authorizer } = fixture();
  const good = token();
  fc.assert(
    fc.property(fc.nat(good.length - 8), fc.constantFrom(...'ABCxyz019-_.'), (at, letter) => {
      const bad = good.slice(0, 7 + at) + letter + good.slice(8 + at);
      // The last letter of a signature carries bits that count for nothing.
      if (bad === good || 7 + at === good.length - 1) return;
      expect(ask(bad)).toMatchObject({ pass: false });
    }),
  );
  expect(authorizer.remembered).toBe(0);
  expect(ask(good)).toMatchObject({ pass: true });
});

test('no text at all makes the gate fail', () => {
  const { ask } = fixture();
  fc.assert(
    fc.property(fc.string(), fc.string(), (authorization, to) => {
      expect(ask(`Bearer ${authorization}`, to).pass).toBe(false);
      readProxyToken(authorization);
    }),
  );
});

describe('limits', () => {
  test('a consumer that opens connections without end is slowed down, others are not', () => {
    const { ask, clock } = fixture();
    const results = Array.from({ length: 400 }, () => ask(token()));
    expect(results.filter(({ pass }) => pass)).toHaveLength(300);
    expect(results.at(-1)).toMatchObject({ status: 429, consumer: 'rome' });
    clock.advance(1_000);
    expect(Array.from({ length: 30 }, () => ask(token())).filter(({ pass }) => pass)).toHaveLength(20);
  });

  test('an address that knocks without end is not even read', () => {
    const { authorizer } = fixture();
    const knock = () =>
      authorizer.authorize({ method: 'CONNECT', target, authorization: undefined, from: '192.0.2.1' });
    expect(new Set(Array.from({ length: 600 }, () => knock()).map((v) => !v.pass && v.status))).toEqual(new Set([407]));
    expect(knock()).toMatchObject({ status: 429 });
  });

  test('what was shown is forgotten only when it would be refused as expired', () => {
    const { ask, clock, authorizer } = fixture();
    const late = token({ iat: start / 1000 + 30 });
    expect(ask(late)).toMatchObject({ pass: true });
    clock.advance(119_000);
    ask(token({ iat: start / 1000 + 119 }));
    expect(authorizer.remembered).toBe(2);
    expect(ask(late)).toMatchObject({ reason: 'the token was shown before' });
    clock.advance(3_000);
    ask(token({ iat: start / 1000 + 122 }));
    expect(authorizer.remembered).toBe(2);
    expect(ask(late)).toMatchObject({ reason: 'the token has expired' });
  });

  test('the number of buckets stays bounded for any number of callers', () => {
    const buckets = new TokenBuckets({ burst: 1, perSecond: 0 }, 3);
    expect(['a', 'b', 'c'].map((key) => buckets.take(key, 0))).toEqual([true, true, true]);
    expect(buckets.take('a', 0)).toBe(false);
    buckets.take('d', 0);
    expect(buckets.take('c', 0)).toBe(false);
    expect(buckets.take('b', 0)).toBe(true);
  });
});

test('the authorizer reports valid tokens and CONNECTs without a token, and does not report invalid ones', () => {
  const evidence: unknown[] = [];
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([target]),
    nonce,
    clock: new ManualClock(start),
    keysOf: () => [rome.publicKey],
    onEvidence: (news) => void evidence.push(news),
  });
  const ask = (authorization: string | undefined, method = 'CONNECT', to = target) =>
    authorizer.authorize({ method, target: to, authorization, from: '192.0.2.7' }).pass;
  expect([ask(token({}, mallory.privateKey)), ask('Basic eDp5'), ask(undefined, 'GET', '/certificate')]).toEqual([
    false,
    false,
    false,
  ]);
  expect(evidence).toEqual([{ tokenlessFrom: '192.0.2.7' }]);
  expect([ask(undefined), ask(token())]).toEqual([false, true]);
  expect(evidence.slice(1)).toEqual([{ tokenlessFrom: '192.0.2.7' }, { consumer: 'rome' }]);
});
