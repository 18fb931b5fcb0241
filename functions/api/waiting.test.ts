import { expect, test } from 'vitest';
import { hostedLimits } from '#control/limits/limits.ts';
import { toGatewayEvent } from '#functions/local/gateway-event.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { handler as listEvents } from './events/list.ts';

test('each second of waiting counts as a request, and at the limit the answer comes at once', async () => {
  const fixture = await createApiFixture({ limits: { ...hostedLimits, requestsPerMinute: 40 } });
  const { clock } = fixture;
  const key = await fixture.tenant('acme');
  const start = clock.now();
  const untilChange = async (_: string, ms: number) => {
    clock.advance(ms);
    return true;
  };
  const composition = { ...fixture.composition, untilChange };
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
