import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AgentCaller } from '#control/access/caller.ts';
import { hostedLimits } from '#control/limits/limits.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { handler } from './message.ts';
import type { SocketEvent } from './socket.ts';

async function doorbell(eventsPerMinute: number) {
  const fixture = await createApiFixture({ limits: { ...hostedLimits, eventsPerMinute } });
  await fixture.tenant('acme');
  const agent: AgentCaller = {
    tenant: 'acme',
    clusterId: 'rome',
    principal: 'cluster/rome',
    from: '192.0.2.1',
    requestId: 'r',
  };
  const { connections, ...rest } = fixture.composition;
  const composition = { ...rest, connections: { ...connections, holderOf: async () => ({ agent }) } };
  return (body: string | undefined) => {
    const requestContext = { connectionId: 'c', requestId: 'r' };
    const event = { requestContext, body, isBase64Encoded: false } as unknown as SocketEvent;
    return handler(event, invocationContext(composition, '$default', 'r'));
  };
}

test.each([
  ['pings', JSON.stringify({ type: 'ping', answer: true })],
  ['frames of a kind that is not known', JSON.stringify({ type: 'pong' })],
  ['frames that are no JSON', '{'],
  ['empty frames', undefined],
])('%s count against the limit of the tenant, as requests of its agents do', async (_, body) => {
  const send = await doorbell(20);
  const statuses: unknown[] = [];
  for (let i = 0; i < 50; i += 1) {
    const answer = await send(body);
    statuses.push(typeof answer === 'object' ? answer.statusCode : answer);
  }
  expect(statuses).toEqual([...Array(20).fill(200), ...Array(30).fill(429)]);
});

test('any frame of an agent is answered with a status and a pong at most', async () => {
  const send = await doorbell(1_000_000);
  const value = fc.oneof(
    fc.integer(),
    fc.double(),
    fc.constantFrom(1e15, -1, null, '7'),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const ping = fc.record(
    {
      type: fc.constantFrom('ping', 'ping', 'pong', '__proto__'),
      revision: value,
      heartbeatSeconds: value,
      answer: value,
    },
    { requiredKeys: ['type'] },
  );
  const body = fc.oneof(
    ping.map((one) => JSON.stringify(one)),
    fc.jsonValue().map((one) => JSON.stringify(one)),
    fc.string({ maxLength: 300 }),
    fc.constant(undefined),
  );
  await fc.assert(
    fc.asyncProperty(body, async (text) => {
      const answer = await send(text);
      expect(answer).toMatchObject({ statusCode: 200 });
      const said = (answer as { readonly body?: string }).body;
      if (said !== undefined) expect(JSON.parse(said)).toMatchObject({ type: 'pong', revision: expect.any(Number) });
    }),
    { numRuns: 1_000 },
  );
});
