import { expect, test } from 'vitest';
import type { AgentCaller } from '#control/access/caller.ts';
import { hostedLimits } from '#control/limits/limits.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { handler } from './message.ts';
import type { SocketEvent } from './socket.ts';

test('pings count against the limit of the tenant, as requests of its agents do', async () => {
  const fixture = await createApiFixture({ limits: { ...hostedLimits, eventsPerMinute: 20 } });
  await fixture.tenant('acme');
  const agent: AgentCaller = {
    tenant: 'acme',
    clusterId: 'rome',
    principal: 'cluster/rome',
    from: '192.0.2.1',
    requestId: 'r',
  };
  const { connections, ...rest } = fixture.composition;
  const composition = { ...rest, connections: { ...connections, agentOf: async () => agent } };
  const event = {
    requestContext: { connectionId: 'c', requestId: 'r' },
    body: JSON.stringify({ type: 'ping', answer: true }),
    isBase64Encoded: false,
  } as unknown as SocketEvent;
  const statuses: unknown[] = [];
  for (let i = 0; i < 50; i += 1) {
    const answer = await handler(event, invocationContext(composition, '$default', 'r'));
    statuses.push(typeof answer === 'object' ? answer.statusCode : answer);
  }
  expect(statuses).toEqual([...Array(20).fill(200), ...Array(30).fill(429)]);
});
