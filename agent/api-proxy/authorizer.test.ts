/** Which tokens open the way to the API server, how often, and what is refused. */
import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proxyTokens, readProxyToken, signProxyToken } from '#agent/pki/proxy-token.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { ProxyAuthorizer } from './authorizer.ts';
import {
  byRome,
  claims,
  crafted,
  eddsa,
  fixture,
  lasting,
  type MaybeToken,
  mallory,
  nonce,
  rome,
  start,
  target,
  token,
} from './testing/proxy-tokens.ts';
import { TokenBuckets } from './token-buckets.ts';

test('a token is a compact JWS over these members in this order: peers of the same version make and take the same text', async () => {
  const { iss, aud, iat, jti, nonce: shown } = claims();
  const body = { iss, aud, iat, exp: iat + 60, jti, nonce: shown };
  expect(await signProxyToken({ iss, aud, iat, jti, nonce: shown }, rome.privateKey)).toBe(
    crafted(eddsa, body, byRome).slice('Bearer '.length),
  );
});

test('of two that show one token at the same time, one passes', async () => {
  const { ask, authorizer } = fixture();
  const once = await token();
  const verdicts = await Promise.all([ask(once), ask(once), ask(once)]);
  expect(verdicts.map(({ pass }) => pass).sort()).toEqual([false, false, true]);
  expect(authorizer.remembered).toBe(1);
});

test('a consumer passes with a fresh token, and the same token never again', async () => {
  const { ask } = fixture();
  const once = await token();
  expect(await ask(once)).toEqual({ pass: true, consumer: 'rome', purpose: 'api-server' });
  expect(await ask(once)).toMatchObject({ pass: false, status: 407, reason: 'the token was shown before' });
  expect(await ask(token())).toMatchObject({ pass: true });
});

test('what the agent signs is what the gate takes, each time another one', async () => {
  const { ask } = fixture();
  let serial = 0;
  const next = proxyTokens({
    consumer: 'rome',
    privateKey: rome.privateKey,
    nowMs: () => start,
    newId: () => `t${serial++}`,
  });
  const [one, two] = [await next('milan', nonce), await next('milan', nonce)];
  expect(one).not.toBe(two);
  for (const each of [one, two]) expect(await ask(`Bearer ${each}`)).toMatchObject({ pass: true });
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
])('$what is refused', async ({ authorization, status, reason }) => {
  expect(await fixture().ask(authorization())).toMatchObject({
    pass: false,
    status,
    reason: expect.stringContaining(reason),
  });
});

test('clocks may be half a minute apart', async () => {
  for (const iat of [start / 1000 - 90, start / 1000 + 30])
    expect(await fixture().ask(token({ iat }))).toMatchObject({ pass: true });
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
])('with a good token nothing but the API server is reached: %j', async (to) => {
  expect(await fixture().ask(token(), to)).toMatchObject({ pass: false, status: 403, consumer: 'rome' });
});

test('a consumer that may only fetch a certificate reaches no API server', async () => {
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([target]),
    nonce,
    clock: new ManualClock(start),
    keysOf: (_consumer, purpose) => (purpose === 'certificate' ? [rome.publicKey] : []),
  });
  const ask = async (method: string, to: string) =>
    authorizer.authorize({ method, target: to, authorization: await token(), from: '192.0.2.1' });
  expect(await ask('GET', '/certificate')).toEqual({ pass: true, consumer: 'rome', purpose: 'certificate' });
  expect(await ask('CONNECT', target)).toMatchObject({ pass: false, status: 407 });
  expect(await ask('CONNECT', '/certificate')).toMatchObject({ pass: false, status: 407 });
  for (const to of ['/', '/certificate/', '/certificate?of=oslo', 'http://milan/certificate'])
    expect(await ask('GET', to)).toMatchObject({ pass: false, status: 405 });
});

test('letters of host names count for nothing, methods other than CONNECT go nowhere', async () => {
  expect(await fixture().ask(token(), 'MILAN.example:6443')).toMatchObject({ pass: true });
  for (const method of ['GET', 'POST', 'connect', 'OPTIONS'])
    expect(await fixture().ask(token(), target, method)).toMatchObject({ pass: false, status: 405 });
});

test('any change to a token makes it worthless, and nothing that is refused is remembered', async () => {
  const { ask, authorizer } = fixture();
  const good = await token();
  await fc.assert(
    fc.asyncProperty(fc.nat(good.length - 8), fc.constantFrom(...'ABCxyz019-_.'), async (at, letter) => {
      const bad = good.slice(0, 7 + at) + letter + good.slice(8 + at);
      // The last letter of a signature carries bits that count for nothing.
      if (bad === good || 7 + at === good.length - 1) return;
      expect(await ask(bad)).toMatchObject({ pass: false });
    }),
  );
  expect(authorizer.remembered).toBe(0);
  expect(await ask(good)).toMatchObject({ pass: true });
});

test('no text at all makes the gate fail', async () => {
  const { ask } = fixture();
  await fc.assert(
    fc.asyncProperty(fc.string(), fc.string(), async (authorization, to) => {
      expect((await ask(`Bearer ${authorization}`, to)).pass).toBe(false);
      readProxyToken(authorization);
    }),
  );
});

describe('limits', () => {
  test('a consumer that opens connections without end is slowed down, others are not', async () => {
    const { ask, clock } = fixture();
    const results = await Promise.all(Array.from({ length: 400 }, () => ask(token())));
    expect(results.filter(({ pass }) => pass)).toHaveLength(300);
    expect(results.at(-1)).toMatchObject({ status: 429, consumer: 'rome' });
    clock.advance(1_000);
    expect((await Promise.all(Array.from({ length: 30 }, () => ask(token())))).filter(({ pass }) => pass)).toHaveLength(
      20,
    );
  });

  test.each([
    { who: 'an address', from: () => '192.0.2.1' },
    { who: 'a host with a whole /64', from: (n: number) => `2001:db8:0:1::${n.toString(16)}` },
  ])('$who that knocks without end is not even read', async ({ from }) => {
    const { authorizer } = fixture();
    let n = 0;
    const knock = () => {
      n += 1;
      return authorizer.authorize({ method: 'CONNECT', target, authorization: undefined, from: from(n) });
    };
    expect(
      new Set((await Promise.all(Array.from({ length: 600 }, () => knock()))).map((v) => !v.pass && v.status)),
    ).toEqual(new Set([407]));
    expect(await knock()).toMatchObject({ status: 429 });
  });

  test('what was shown is forgotten only when it would be refused as expired', async () => {
    const { ask, clock, authorizer } = fixture();
    const late = await token({ iat: start / 1000 + 30 });
    expect(await ask(late)).toMatchObject({ pass: true });
    clock.advance(119_000);
    await ask(token({ iat: start / 1000 + 119 }));
    expect(authorizer.remembered).toBe(2);
    expect(await ask(late)).toMatchObject({ reason: 'the token was shown before' });
    clock.advance(3_000);
    await ask(token({ iat: start / 1000 + 122 }));
    expect(authorizer.remembered).toBe(2);
    expect(await ask(late)).toMatchObject({ reason: 'the token has expired' });
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

test('the authorizer reports valid tokens and CONNECTs without a token, and does not report invalid ones', async () => {
  const evidence: unknown[] = [];
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set([target]),
    nonce,
    clock: new ManualClock(start),
    keysOf: () => [rome.publicKey],
    onEvidence: (news) => void evidence.push(news),
  });
  const ask = async (authorization: MaybeToken, method = 'CONNECT', to = target) =>
    (await authorizer.authorize({ method, target: to, authorization: await authorization, from: '192.0.2.7' })).pass;
  expect([
    await ask(token({}, mallory.privateKey)),
    await ask('Basic eDp5'),
    await ask(undefined, 'GET', '/certificate'),
  ]).toEqual([false, false, false]);
  expect(evidence).toEqual([{ tokenlessFrom: '192.0.2.7' }]);
  expect([await ask(undefined), await ask(token())]).toEqual([false, true]);
  expect(evidence.slice(1)).toEqual([{ tokenlessFrom: '192.0.2.7' }, { consumer: 'rome' }]);
});
