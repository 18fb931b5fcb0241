/** A broker whose process dies at a chosen write, and the request that another process is asked again: for tests of what crashes leave. */
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import type { DocumentSource } from '#control/ports/document-source.ts';
import { createFaultyStore } from '#control/testing/faulty-store.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { createApiFixture } from './api-fixture.ts';

/** Of the broker's identity provider. */
export const providerUrl = 'https://id.example';
const documents: DocumentSource = {
  refusal: () => undefined,
  json: async (url) =>
    url.endsWith('/keys') ? { keys: [{ kty: 'OKP' }] } : { issuer: providerUrl, jwks_uri: `${providerUrl}/keys` },
};

/** Of a death: before the commit of a write, or after it and before the caller hears of it. */
export const moments = ['before', 'after'] as const;
export type Moment = (typeof moments)[number];

/** Tenants acme, with the clusters rome and milan, and bolt, with turin. */
export async function createDyingBroker() {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const store = createMemoryStore({ clock });
  const faulty = createFaultyStore();
  const fixture = await createApiFixture({ clock, store: faulty.wrap(store), documents });
  const [acme, bolt] = [await fixture.tenant('acme'), await fixture.tenant('bolt')];
  await fixture.join({ tenant: 'acme', key: acme, cluster: 'rome' });
  await fixture.join({ tenant: 'acme', key: acme, cluster: 'milan' });
  await fixture.join({ tenant: 'bolt', key: bolt, cluster: 'turin' });
  return { fixture, clock, store, faulty, keys: { acme, bolt, operator: fixture.operatorKey } };
}

export type DyingBroker = Awaited<ReturnType<typeof createDyingBroker>>;
export type Sender = keyof DyingBroker['keys'];

export interface Asked {
  readonly path: string;
  readonly body?: object;
}

/** What a POST without an Idempotency-Key answers. */
export const post = async (b: DyingBroker, by: Sender, path: string, body: object = {}) =>
  (await b.fixture.call({ method: 'POST', path, key: b.keys[by], body })).body;

/** Under one Idempotency-Key. The first process dies at its write `dying`, counted from 1 (0: at none); another one is asked the same a minute later. */
export async function askedTwice(
  b: DyingBroker,
  by: Sender,
  { path, body = {} }: Asked,
  dying = 0,
  when: Moment = 'after',
) {
  const call = { method: 'POST', path, key: b.keys[by], body, headers: { 'idempotency-key': 'one' } };
  b.faulty.fault.when = when;
  b.faulty.fault.in = dying;
  const before = b.faulty.writes.count;
  const first = await b.fixture.call(call);
  const died = b.faulty.fault.in === 0 && dying > 0;
  b.faulty.fault.in = 0;
  const writes = b.faulty.writes.count - before;
  // Beyond the lease of a claim.
  b.clock.advance(61_000);
  const next = await createApiFixture({ clock: b.clock, store: b.store, documents });
  return { first, again: await next.call(call), died, writes, next };
}
