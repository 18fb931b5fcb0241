import { expect, test } from 'vitest';
import { createApiFixture } from '#functions/testing/api-fixture.ts';

const hour = 3_600_000;

async function acme() {
  const fixture = await createApiFixture();
  const key = await fixture.tenant('acme');
  const get = (path: string, by = key) => fixture.call({ method: 'GET', path, key: by });
  const make = (name: string) =>
    fixture.call({ method: 'POST', path: '/v1/keys', key, body: { name, role: 'viewer' } });
  return { fixture, key, get, make };
}

test('a cursor is of one list of one tenant, and refused by every other', async () => {
  const { fixture, get, make } = await acme();
  const bolt = await fixture.tenant('bolt');
  await make('a');
  const { body } = await get('/v1/keys?limit=1');
  expect((await get(`/v1/keys?limit=1&cursor=${body.cursor}`)).status).toBe(200);
  const others = ['/v1/audit', '/v1/events', '/v1/clusters', '/v1/peerings', '/v1/approval-rules', '/v1/requests'];
  for (const path of others) {
    const answer = await get(`${path}?cursor=${body.cursor}`);
    expect([path, answer.status, answer.body.code]).toEqual([path, 404, 'cursor_unknown']);
  }
  const foreign = await get(`/v1/keys?cursor=${body.cursor}`, bolt);
  expect([foreign.status, foreign.body.code]).toEqual([404, 'cursor_unknown']);
  const events = await get('/v1/events?limit=1');
  expect((await get(`/v1/audit?cursor=${events.body.cursor}`)).body.code).toBe('cursor_unknown');
});

test('a follower of events that was away for longer than they are kept hears of which time it missed some', async () => {
  const { fixture, get, make } = await acme();
  const left = new Date(fixture.clock.now()).toISOString();
  const { cursor } = (await get('/v1/events')).body;
  fixture.clock.advance(hour);
  await make('missed');
  fixture.clock.advance(24 * hour);
  await fixture.store.sweep();
  const { status, body } = await get(`/v1/events?cursor=${cursor}`);
  expect([status, body.code, body.retryable]).toEqual([410, 'cursor_expired', false]);
  expect(body.detail).toContain(left);
  expect((await get('/v1/events')).status).toBe(200);
});

test('a follower that was away while nothing happened goes on', async () => {
  const { fixture, get, make } = await acme();
  const { cursor } = (await get('/v1/events')).body;
  fixture.clock.advance(48 * hour);
  await fixture.store.sweep();
  const { status, body } = await get(`/v1/events?cursor=${cursor}`);
  expect([status, body.items]).toEqual([200, []]);
  await make('seen');
  expect((await get(`/v1/events?cursor=${body.cursor}`)).body.items).toHaveLength(1);
});

test('If-Match compares strongly', async () => {
  const { fixture, key, get } = await acme();
  const { etag } = (await get('/v1/tenant')).headers;
  const change = (match: string) =>
    fixture.call({
      method: 'PATCH',
      path: '/v1/tenant',
      key,
      body: { displayName: 'x' },
      headers: { 'if-match': match },
    });
  const weak = await change(`W/${etag}`);
  expect([weak.status, weak.body.code]).toEqual([412, 'precondition_failed']);
  expect((await change(etag ?? '')).status).toBe(200);
});

test('a limit that is reached is one status for all of them, and no invitation to try again', async () => {
  const { fixture, key } = await acme();
  const rule = { name: 'r', tenants: ['bolt'], maxResources: { cpu: '1' } };
  let last = await fixture.call({ method: 'POST', path: '/v1/approval-rules', key, body: rule });
  for (let i = 0; i < 200 && last.status === 201; i += 1) {
    last = await fixture.call({ method: 'POST', path: '/v1/approval-rules', key, body: rule });
  }
  expect([last.status, last.body.code, last.body.retryable]).toEqual([409, 'limit_reached', false]);
  expect(last.headers).not.toHaveProperty('retry-after');
});

test('the audit log is searched by subject, action, principal and time, in bounded steps', async () => {
  const { fixture, get, make } = await acme();
  const from = fixture.clock.now();
  for (let i = 0; i < 60; i += 1) {
    fixture.clock.advance(1_000);
    await make(`k${i}`);
  }
  const time = (seconds: number) => new Date(from + seconds * 1_000).toISOString();
  const names = async (query: string) => {
    const { body } = await get(`/v1/audit?limit=200&${query}`);
    return body.items.map(({ after }: { after: { name: string } }) => after.name);
  };
  expect(await names(`since=${time(10)}&until=${time(13)}`)).toEqual(['k11', 'k10', 'k9']);
  expect(await names('action=tenant.create')).toHaveLength(1);
  expect(await names('principal=operator/none')).toEqual([]);
  const { body } = await get('/v1/audit?limit=1');
  const [{ subject, principal }] = body.items;
  expect(await names(`subject=${subject}&principal=${principal}&action=api-key.create`)).toEqual(['k59']);
  expect((await get('/v1/audit?since=yesterday')).status).toBe(422);
});
