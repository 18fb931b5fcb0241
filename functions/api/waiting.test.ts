import { expect, test } from 'vitest';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import { hostedLimits } from '#control/limits/limits.ts';
import type { Store } from '#control/ports/store.ts';
import { listenIn } from '#functions/local/change-signal.ts';
import { toGatewayEvent } from '#functions/local/gateway-event.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { createStartTurns } from '#functions/local/start-turns.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { handler as listEvents } from './events/list.ts';

test('each second of waiting counts as a request, and at the limit the answer comes at once', async () => {
  const fixture = await createApiFixture({ limits: { ...hostedLimits, requestsPerMinute: 40 } });
  const { clock } = fixture;
  const key = await fixture.tenant('acme');
  const start = clock.now();
  const changed = async (ms: number) => {
    clock.advance(ms);
    return true;
  };
  const composition = { ...fixture.composition, listen: () => ({ changed, end: () => undefined }) };
  const wait = async (): Promise<readonly [status: unknown, seconds: number]> => {
    const from = clock.now();
    const request = {
      method: 'GET',
      url: '/v1/events?subject=none&wait=25',
      headers: { authorization: `Bearer ${key}` },
      sourceIp: '192.0.2.1',
      body: Buffer.alloc(0),
      requestId: 'r',
      receivedAt: from,
    };
    const event = toGatewayEvent(request, { routeKey: 'GET /v1/events', pathParameters: {} });
    const answer = await listEvents(event, invocationContext(composition, 'GET /v1/events', 'r'));
    return [typeof answer === 'object' ? answer.statusCode : answer, (clock.now() - from) / 1_000];
  };
  expect(await wait()).toEqual([200, 25]);
  const [status, seconds] = await wait();
  expect(status).toBe(200);
  expect(seconds).toBeLessThan(25);
  expect((await wait())[0]).toBe(429);
  expect(clock.now() - start).toBeLessThan(60_000);
});

const never = new AbortController().signal;

/** Three clusters, two peerings, and long polls as a broker in one process has them. */
async function twoPeerings() {
  const clock = new ManualClock();
  const changes = listenIn(createMemoryStore({ clock }), { clock, turns: createStartTurns(), stopping: never });
  const reads = new Map<string, number>();
  const note = (what: string): void => void reads.set(what, (reads.get(what) ?? 0) + 1);
  const store: Store = {
    ...changes.store,
    get(pk, sk, signal) {
      note(sk);
      return changes.store.get(pk, sk, signal);
    },
    outbox(after, limit, stream, signal) {
      note('feed');
      return changes.store.outbox(after, limit, stream, signal);
    },
  };
  const fixture = await createApiFixture({ clock, store, listen: changes.listen });
  const key = await fixture.tenant('acme');
  for (const cluster of ['rome', 'milan', 'oslo']) await fixture.join({ tenant: 'acme', key, cluster });
  const request = async (provider: string) => {
    const body = { consumer: 'rome', provider, resources: { cpu: '1' } };
    const answer = await fixture.call({ method: 'POST', path: '/v1/peerings', key, body });
    expect(answer.status).toBe(202);
    return answer.body as { readonly id: string; readonly version: number };
  };
  const peerings = [await request('milan'), await request('oslo')] as const;
  return {
    peerings,
    waiting: changes.waiting,
    reads: (what: string) => reads.get(what) ?? 0,
    get: (path: string, headers = {}) => fixture.call({ method: 'GET', path, key, headers }),
    async change({ id }: { readonly id: string }, team: string) {
      const path = `/v1/peerings/${id}`;
      const answer = await fixture.call({ method: 'PATCH', path, key, body: { labels: { team } } });
      expect(answer.status).toBe(200);
    },
  };
}

/** So that everything that was woken has gone on. */
async function quiet(): Promise<void> {
  for (let i = 0; i < 10; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('a wait for one peering reads nothing when another one of its tenant changes, and is answered by its own change', async () => {
  const { peerings, waiting, reads, get, change } = await twoPeerings();
  const [mine, other] = peerings;
  const answer = get(`/v1/peerings/${mine.id}?wait=25`, { 'if-none-match': `"${mine.version}"` });
  await quiet();
  expect(waiting()).toBe(1);
  const before = reads(mine.id);
  for (const team of ['shop', 'bank', 'mail']) await change(other, team);
  await quiet();
  expect([reads(mine.id) - before, waiting()]).toEqual([0, 1]);
  await change(mine, 'shop');
  const { status, body } = await answer;
  expect([status, body.labels, waiting()]).toEqual([200, { team: 'shop' }, 0]);
});

test('a wait for events of one subject reads nothing for those of others, one for all events is answered by any', async () => {
  const { peerings, waiting, reads, get, change } = await twoPeerings();
  const [mine, other] = peerings;
  const { body } = await get('/v1/events?limit=200');
  const since = `cursor=${encodeURIComponent(body.cursor)}&wait=25`;
  const one = get(`/v1/events?subject=peering/${mine.id}&${since}`);
  const all = get(`/v1/events?${since}`);
  await quiet();
  expect(waiting()).toBe(2);
  const before = reads('feed');
  await change(other, 'shop');
  const subjects = ({ items }: { readonly items: readonly { readonly subject: string }[] }) =>
    items.map(({ subject }) => subject);
  expect(subjects((await all).body)).toEqual([`peering/${other.id}`]);
  expect([reads('feed') - before, waiting()]).toEqual([1, 1]);
  await change(mine, 'shop');
  expect(subjects((await one).body)).toEqual([`peering/${mine.id}`]);
});
