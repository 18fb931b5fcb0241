/** When a token of a consumer is kept, renewed or made again; and which kind of credentials a cluster gives. */
import { createPublicKey } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { sealToken } from '#agent/pki/sealed-token.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { choiceOf, type ProbeRequest, probeMs, verdictOf } from './choice.ts';
import { heldToken } from './issue-token.ts';
import { buildCredentialSecret, credentialSecretName, decideToken, renewalOf, tokenSeconds } from './issued-token.ts';

const hour = 3_600_000;
const start = Date.UTC(2026, 0, 1);
const rome = createPublicKey(generateClusterKeys().publicKey);
const other = createPublicKey(generateClusterKeys().publicKey);
const holder = {
  consumer: 'rome',
  namespace: 'liqo-tenant-rome',
  owner: { apiVersion: 'authentication.liqo.io/v1beta1', kind: 'Tenant', name: 'rome', uid: 'u1' },
};
const csr = toBase64('a request');

let day: string;
let hourLong: string;
beforeAll(async () => {
  day = await sealToken('t', rome, start + 24 * hour);
  hourLong = await sealToken('t', rome, start + hour);
});

function stored(sealed: string, change: { boundTo?: string; issuedAtMs?: number; uid?: string } = {}): Secret {
  const { boundTo = 's1', issuedAtMs = start, uid = 's1' } = change;
  const made = buildCredentialSecret(holder, { csr, sealed, issuedAtMs, boundTo });
  return { ...made, metadata: { ...made.metadata, uid } } as Secret;
}

describe('a token', () => {
  test.each([
    ['is new', 0, 'keep'],
    ['is just under half a day old', 12 * hour - 1, 'keep'],
    ['is half a day old', 12 * hour, 'issue'],
    ['has ended', 25 * hour, 'issue'],
    ['seems to be of tomorrow, since our clock jumped back', -hour, 'issue'],
  ])('of a day that %s: after %i ms, %s', (_what, afterMs, step) => {
    expect(decideToken(stored(day), csr, rome, start + afterMs).do).toBe(step);
  });

  test('that the API server gave for an hour only is renewed after half an hour', () => {
    expect(decideToken(stored(hourLong), csr, rome, start + hour / 2 - 1)).toMatchObject({
      do: 'keep',
      renewAtMs: start + hour / 2,
    });
    expect(decideToken(stored(hourLong), csr, rome, start + hour / 2)).toMatchObject({ do: 'issue', held: { csr } });
    expect(decideToken(stored(hourLong), csr, rome, start + hour)).toEqual({ do: 'issue', held: undefined });
  });

  test('is made again, and the one before is not shown any more, once Secret, request or key is another', () => {
    const again = { do: 'issue', held: undefined };
    expect(decideToken(undefined, csr, rome, start)).toEqual(again);
    expect(decideToken(stored(day), toBase64('another'), rome, start)).toEqual(again);
    expect(decideToken(stored(day), csr, other, start)).toEqual(again);
    expect(decideToken(stored(day, { uid: 's2' }), csr, rome, start)).toEqual(again);
    expect(decideToken(stored('nonsense'), csr, rome, start)).toEqual(again);
    const going = stored(day);
    going.metadata.deletionTimestamp = new Date(start).toISOString();
    expect(decideToken(going, csr, rome, start)).toEqual(again);
  });

  test('is held for its own request until it ends, and no longer', () => {
    expect(heldToken(stored(day), csr, start + 23 * hour)).toEqual({
      sealedToken: day,
      tokenExpiration: '2026-01-02T00:00:00.000Z',
    });
    expect(heldToken(stored(day), csr, start + 24 * hour)).toBeUndefined();
    expect(heldToken(stored(day), toBase64('another'), start)).toBeUndefined();
  });

  test('is renewed five minutes to twelve hours after it was issued, however far the clocks of agent and API server are apart', () => {
    fc.assert(
      fc.property(fc.integer({ min: -(10 ** 9), max: 10 ** 9 }), (leftMs) => {
        const after = renewalOf({ endMs: start + leftMs, issuedAtMs: start }) - start;
        expect(after).toBeGreaterThanOrEqual(300_000);
        expect(after).toBeLessThanOrEqual((tokenSeconds / 2) * 1000);
      }),
    );
  });

  test('has a Secret for each identity', () => {
    expect(credentialSecretName({})).toBe('isthmus-credential-peer');
    expect(credentialSecretName({ slice: 'milan' })).toBe('isthmus-credential-slice-milan');
  });
});

describe('the kind of credentials', () => {
  const found = (kind?: string): Secret => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'authentication-keys',
      ...(kind && { annotations: { 'isthmus.dev/credentials': kind, 'isthmus.dev/credentials-reason': 'because' } }),
    },
  });
  test.each([
    ['certificate', 'token', { kind: 'certificate' }],
    ['token', 'certificate', { kind: 'token', reason: 'the agent is told to give tokens' }],
    ['auto', 'token', { kind: 'token', reason: 'because' }],
    ['auto', 'certificate', { kind: 'certificate', reason: 'because' }],
    ['auto', 'nonsense', undefined],
    ['auto', undefined, undefined],
  ] as const)('told %s, found %s: %o', (credentials, kind, choice) => {
    expect(choiceOf({ credentials }, found(kind))).toEqual(choice);
  });

  test.each<[string, ProbeRequest, number, string | undefined]>([
    ['signed at once', { isSigned: true }, 0, 'certificate'],
    ['signed at the last moment', { isSigned: true }, probeMs, 'certificate'],
    ['not answered yet', { isSigned: false }, probeMs - 1, undefined],
    ['not answered in time', { isSigned: false }, probeMs, 'token'],
    ['refused', { isSigned: false, refusal: 'a policy says no' }, 0, 'token'],
  ])('of a cluster whose signer has %s', (_what, request, afterMs, kind) => {
    const verdict = verdictOf(request, start, start + afterMs);
    expect(verdict?.kind).toBe(kind);
    if (request.refusal !== undefined) expect(verdict?.reason).toContain(request.refusal);
  });
});
