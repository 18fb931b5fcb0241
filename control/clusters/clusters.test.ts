import { createHash, createPublicKey, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AgentClaims } from '#shared/schema/protocol/agent-identity.ts';
import { protocolVersion } from '#shared/schema/protocol/agent-protocol.ts';
import type { Caller } from '../access/caller.ts';
import { newAgentKeys, signRequest, type ToSign } from '../testing/agent-keys.ts';
import { adminOf, type BrokerClusters, brokerUrl, createBrokerClusters, origin } from '../testing/broker-clusters.ts';
import { openFacts } from '../testing/simulated-cluster.ts';

const admin = adminOf('default');
const keys = newAgentKeys();
const enrolPath = '/v1/agent/enroll';

async function tokenFor(
  clusters: BrokerClusters,
  clusterId: string,
  options?: { readonly replaceKey: boolean },
): Promise<string> {
  const { token } = await clusters.control.clusters.createJoinToken(admin, clusterId, options);
  return (JSON.parse(Buffer.from(token.slice('isthmus1.'.length), 'base64url').toString()) as { secret: string })
    .secret;
}

async function enroll(
  clusters: BrokerClusters,
  token: string,
  options: { keys?: typeof keys; clusterId?: string; tenant?: string; succession?: string } = {},
) {
  const { clusterId = 'rome', tenant = 'default' } = options;
  const by = options.keys ?? keys;
  const body = {
    clusterId,
    token,
    publicKey: by.publicKey,
    facts: openFacts,
    ...(options.succession && { succession: options.succession }),
  };
  const request: ToSign = {
    keys: by,
    tenant,
    clusterId,
    audience: brokerUrl,
    now: clusters.clock.now(),
    path: enrolPath,
    body: JSON.stringify(body),
  };
  return clusters.control.clusters.enroll(body, await signRequest(request));
}

async function joined() {
  const clusters = createBrokerClusters();
  await clusters.control.tenants.bootstrap('default', origin);
  await enroll(clusters, await tokenFor(clusters, 'rome'));
  const sign = (more: Partial<ToSign> = {}) =>
    signRequest({
      keys,
      tenant: 'default',
      clusterId: 'rome',
      audience: brokerUrl,
      now: clusters.clock.now(),
      ...more,
    });
  return { world: clusters, sign };
}

describe('joining', () => {
  test('takes a token that names broker, tenant and cluster, and pins the key', async () => {
    const clusters = createBrokerClusters({ deps: { broker: () => ({ url: brokerUrl, caHash: 'a'.repeat(64) }) } });
    await clusters.control.tenants.bootstrap('default', origin);
    const issued = await clusters.control.clusters.createJoinToken(admin, 'rome');
    expect(JSON.parse(Buffer.from(issued.token.slice(9), 'base64url').toString())).toMatchObject({
      url: brokerUrl,
      tenant: 'default',
      clusterId: 'rome',
      caHash: 'a'.repeat(64),
    });
    expect(issued.expiresAt - clusters.clock.now()).toBe(15 * 60_000);
    const answer = await enroll(clusters, await tokenFor(clusters, 'rome'));
    expect(answer).toEqual({ clusterId: 'rome', tenant: 'default', protocolVersion, heartbeatSeconds: 300 });
    expect(await clusters.control.clusters.get(admin, 'rome')).toMatchObject({
      id: 'rome',
      state: 'joined',
      online: true,
    });
  });

  test('keeps no token in clear', async () => {
    const clusters = createBrokerClusters();
    await clusters.control.tenants.bootstrap('default', origin);
    const secret = await tokenFor(clusters, 'rome');
    const stored = await clusters.store.query({ partition: 't/default/join-tokens', limit: 10 });
    expect(JSON.stringify([stored, await clusters.store.outbox(undefined, 50)])).not.toContain(secret);
  });

  test('may repeat itself when the answer was lost, but not with another key', async () => {
    const clusters = createBrokerClusters();
    await clusters.control.tenants.bootstrap('default', origin);
    const token = await tokenFor(clusters, 'rome');
    const first = await enroll(clusters, token);
    expect(await enroll(clusters, token)).toEqual(first);
    await expect(enroll(clusters, token, { keys: newAgentKeys() })).rejects.toMatchObject({ code: 'join_token_used' });
  });

  test('is refused with an unknown, foreign or expired token', async () => {
    const clusters = createBrokerClusters();
    await clusters.control.tenants.bootstrap('default', origin);
    await clusters.control.tenants.bootstrap('acme', origin);
    const token = await tokenFor(clusters, 'rome');
    const unknown = { code: 'join_token_unknown' };
    await expect(enroll(clusters, 'never-issued')).rejects.toMatchObject(unknown);
    await expect(enroll(clusters, token, { tenant: 'acme' })).rejects.toMatchObject(unknown);
    await expect(enroll(clusters, token, { clusterId: 'milan' })).rejects.toMatchObject(unknown);
    clusters.clock.advance(15 * 60_000);
    await expect(enroll(clusters, token)).rejects.toMatchObject({ code: 'join_token_expired' });
    expect((await clusters.control.clusters.list(admin)).items).toEqual([]);
  });

  test('must be signed with the key that is to be pinned', async () => {
    const clusters = createBrokerClusters();
    await clusters.control.tenants.bootstrap('default', origin);
    const body = {
      clusterId: 'rome',
      token: await tokenFor(clusters, 'rome'),
      publicKey: newAgentKeys().publicKey,
      facts: openFacts,
    };
    const request = {
      keys,
      tenant: 'default',
      clusterId: 'rome',
      audience: brokerUrl,
      now: clusters.clock.now(),
      path: enrolPath,
    };
    const signed = await signRequest({ ...request, body: JSON.stringify(body) });
    await expect(clusters.control.clusters.enroll(body, signed)).rejects.toMatchObject({ code: 'signature_invalid' });
  });

  const succession = (former: typeof keys, next: typeof keys): string => {
    const der = createPublicKey({ key: { ...next.publicKey }, format: 'jwk' }).export({ type: 'spki', format: 'der' });
    const text = `isthmus.dev/key-succession\nsha256:${createHash('sha256').update(der).digest('hex')}`;
    return sign(null, Buffer.from(text), former.privateKey).toString('base64');
  };

  test('again with another key is refused to a token alone: a key that may only join takes no name from a cluster', async () => {
    const { world: clusters, sign: signed } = await joined();
    const thief = newAgentKeys();
    const token = await tokenFor(clusters, 'rome');
    for (const proof of [undefined, succession(thief, thief), succession(keys, newAgentKeys()), 'AAAA', '']) {
      const enrolment = enroll(clusters, token, { keys: thief, ...(proof !== undefined && { succession: proof }) });
      await expect(enrolment).rejects.toMatchObject({ code: 'cluster_key_known' });
    }
    expect((await clusters.control.clusters.authenticateAgent(await signed())).clusterId).toBe('rome');
  });

  test('again with another key is allowed by the signature of the former one', async () => {
    const { world: clusters, sign: signed } = await joined();
    const next = newAgentKeys();
    await enroll(clusters, await tokenFor(clusters, 'rome'), { keys: next, succession: succession(keys, next) });
    expect((await clusters.control.clusters.authenticateAgent(await signed({ keys: next }))).clusterId).toBe('rome');
    const { items } = await clusters.control.audit.list(admin, { subject: 'cluster/rome' });
    expect(items.find((record) => record.action === 'cluster.enroll')).toMatchObject({
      after: { keyBy: 'succession' },
    });
  });

  test('a token that replaces keys is made for administrators of the tenant alone', async () => {
    const { world: clusters } = await joined();
    const operator: Caller = { ...admin, role: 'operator' };
    await expect(
      clusters.control.clusters.createJoinToken(operator, 'rome', { replaceKey: true }),
    ).rejects.toMatchObject({ code: 'forbidden', detail: { permission: 'clusters:replace-key' } });
    await expect(
      clusters.control.clusters.createJoinToken({ ...admin, scopes: ['clusters:join'] }, 'rome', { replaceKey: true }),
    ).rejects.toMatchObject({ code: 'forbidden' });
  });

  test('again with a token that was made to replace the key replaces it', async () => {
    const { world: clusters, sign } = await joined();
    const next = newAgentKeys();
    await enroll(clusters, await tokenFor(clusters, 'rome', { replaceKey: true }), { keys: next });
    await expect(clusters.control.clusters.authenticateAgent(await sign())).rejects.toMatchObject({
      code: 'signature_invalid',
    });
    expect((await clusters.control.clusters.authenticateAgent(await sign({ keys: next }))).clusterId).toBe('rome');
    const { items } = await clusters.control.audit.list(admin, { subject: 'cluster/rome' });
    expect(items.filter((record) => record.action === 'cluster.enroll')).toHaveLength(2);
  });

  test.each(['Rome', 'a/b', '', 'x'.repeat(64)])('is refused for the name %j', async (name) => {
    const { world: clusters } = await joined();
    await expect(clusters.control.clusters.createJoinToken(admin, name)).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });

  test('needs an operator', async () => {
    const { world: clusters } = await joined();
    const viewer: Caller = { ...admin, role: 'viewer' };
    await expect(clusters.control.clusters.createJoinToken(viewer, 'milan')).rejects.toMatchObject({
      code: 'forbidden',
    });
  });
});

describe('an agent request', () => {
  test('is known by its signature', async () => {
    const { world: clusters, sign } = await joined();
    expect(await clusters.control.clusters.authenticateAgent(await sign())).toMatchObject({
      tenant: 'default',
      clusterId: 'rome',
      principal: 'cluster/rome',
    });
  });

  const claims = (change: Partial<AgentClaims>): Partial<ToSign> => ({ claims: change });
  test.each<{ what: string; change: (now: number) => Partial<ToSign>; code: string }>([
    { what: 'signed by another key', change: () => ({ keys: newAgentKeys() }), code: 'signature_invalid' },
    { what: 'of a cluster that never joined', change: () => ({ clusterId: 'paris' }), code: 'signature_invalid' },
    { what: 'of another tenant', change: () => ({ tenant: 'acme' }), code: 'signature_invalid' },
    { what: 'for another broker', change: () => ({ audience: 'https://else.test' }), code: 'signature_invalid' },
    { what: 'whose issuer is not its subject', change: () => claims({ iss: 'milan' }), code: 'signature_invalid' },
    { what: 'signed for another path', change: () => claims({ htp: '/v1/agent/ack' }), code: 'signature_invalid' },
    { what: 'signed for another method', change: () => claims({ htm: 'GET' }), code: 'signature_invalid' },
    { what: 'signed for another body', change: () => claims({ bsh: 'x' }), code: 'signature_invalid' },
    { what: 'with a short jti', change: () => claims({ jti: 'short' }), code: 'signature_invalid' },
    {
      what: 'that lives too long',
      change: (now) => claims({ exp: Math.floor(now / 1_000) + 3_600 }),
      code: 'signature_invalid',
    },
    { what: 'from a minute and a half ago', change: (now) => ({ now: now - 90_000 }), code: 'request_expired' },
    { what: 'from the future', change: (now) => ({ now: now + 30_000 }), code: 'request_expired' },
  ])('$what is refused', async ({ change, code }) => {
    const { world: clusters, sign } = await joined();
    const signed = await sign(change(clusters.clock.now()));
    await expect(clusters.control.clusters.authenticateAgent(signed)).rejects.toMatchObject({ code });
  });

  test.each([undefined, 'Bearer', 'Bearer x.y', 'Basic abc', 'Bearer a.b.c'])(
    'with authorization %j is refused',
    async (authorization) => {
      const { world: clusters, sign } = await joined();
      const code = authorization === 'Bearer a.b.c' ? 'signature_invalid' : 'unauthenticated';
      await expect(
        clusters.control.clusters.authenticateAgent({ ...(await sign()), authorization }),
      ).rejects.toMatchObject({ code });
    },
  );

  test('counts once, also when both copies arrive together', async () => {
    const { world: clusters, sign } = await joined();
    const signed = await sign();
    const results = await Promise.allSettled([1, 2].map(() => clusters.control.clusters.authenticateAgent(signed)));
    expect(results.map((r) => r.status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(clusters.control.clusters.authenticateAgent(signed)).rejects.toMatchObject({
      code: 'request_replayed',
    });
    clusters.clock.advance(55_000);
    await expect(clusters.control.clusters.authenticateAgent(signed)).rejects.toMatchObject({
      code: 'request_replayed',
    });
  });
});

describe('a cluster', () => {
  test('is offline after three silent heartbeats and online again when heard', async () => {
    const { world: clusters, sign } = await joined();
    clusters.clock.advance(90_000);
    expect((await clusters.control.clusters.get(admin, 'rome')).online).toBe(false);
    await clusters.control.clusters.authenticateAgent(await sign());
    expect((await clusters.control.clusters.get(admin, 'rome')).online).toBe(true);
  });

  test('writes its heartbeats at most every third of one', async () => {
    const { world: clusters } = await joined();
    const seen = () => clusters.store.get('t/default/heard', 'rome!seen');
    const before = await seen();
    clusters.clock.advance(9_000);
    await clusters.control.clusters.heard({ tenant: 'default', clusterId: 'rome' });
    expect(await seen()).toEqual(before);
    clusters.clock.advance(1_000);
    await clusters.control.clusters.heard({ tenant: 'default', clusterId: 'rome' });
    expect((await seen())?.version).toBe(2);
  });

  test('of version 2 is offline after three of the heartbeats that it was told, and asked for more of them when busy', async () => {
    const { world: clusters, sign } = await joined();
    const hear = async () => clusters.control.clusters.authenticateAgent(await sign({ claims: { ver: 2 } }));
    const online = async () => (await clusters.control.clusters.get(admin, 'rome')).online;
    await hear();
    clusters.clock.advance(899_000);
    expect(await online()).toBe(true);
    clusters.clock.advance(1_000);
    expect(await online()).toBe(false);
    const at = { pk: 't/default/heard', sk: 'rome!revision' };
    await clusters.store.transact([{ op: 'put', ...at, value: { revision: 1, at: clusters.clock.now() } }]);
    await hear();
    clusters.clock.advance(44_000);
    expect(await online()).toBe(true);
    clusters.clock.advance(1_000);
    expect(await online()).toBe(false);
  });

  test('whose doorbell closed is offline unless it is heard again within two minutes', async () => {
    const { world: clusters, sign } = await joined();
    const rome = { tenant: 'default', clusterId: 'rome' };
    const online = async () => (await clusters.control.clusters.get(admin, 'rome')).online;
    await clusters.control.clusters.authenticateAgent(await sign({ claims: { ver: 2 } }));
    await clusters.control.clusters.lost(rome);
    clusters.clock.advance(119_000);
    await clusters.control.clusters.heard({ ...rome, protocol: 2, ping: true });
    clusters.clock.advance(2_000);
    expect(await online()).toBe(true);
    await clusters.control.clusters.lost(rome);
    clusters.clock.advance(119_000);
    expect(await online()).toBe(true);
    clusters.clock.advance(1_000);
    expect(await online()).toBe(false);
  });

  test('that has left is refused, hidden, and may join again', async () => {
    const { world: clusters, sign } = await joined();
    expect(await clusters.control.clusters.remove(admin, 'rome')).toMatchObject({ state: 'left', online: false });
    await expect(clusters.control.clusters.authenticateAgent(await sign())).rejects.toMatchObject({
      code: 'signature_invalid',
    });
    expect((await clusters.control.clusters.list(admin)).items).toEqual([]);
    expect((await clusters.control.clusters.list(admin, { includeLeft: true })).items).toHaveLength(1);
    await enroll(clusters, await tokenFor(clusters, 'rome'));
    expect((await clusters.control.clusters.get(admin, 'rome')).state).toBe('joined');
  });
});
