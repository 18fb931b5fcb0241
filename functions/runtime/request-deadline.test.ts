import { expect, test } from 'vitest';
import * as z from 'zod';
import { fromGatewayResult, toGatewayEvent } from '#functions/local/gateway-event.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { http } from './http.ts';
import { answerReserveMs } from './request-deadline.ts';

/** Takes as long as it is asked to, or until its signal ends it. */
const slow = http(
  {
    method: 'GET',
    path: '/v1/slow',
    summary: 'Work',
    description: 'Works.',
    auth: 'key',
    query: z.object({ ms: z.coerce.number() }),
    answers: { 200: { description: 'Done.' } },
  },
  ({ query, signal }) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve({ body: {} }), query.ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    }),
);

test('a request that runs out of time is told so, and ends no other request of the process', async () => {
  const { composition, tenant } = await createApiFixture();
  const ask = async (name: string, ms: number, hasMs: number) => {
    const request = {
      ...{ method: 'GET', url: `/v1/slow?ms=${ms}`, headers: { authorization: `Bearer ${await tenant(name)}` } },
      ...{ sourceIp: '192.0.2.1', body: Buffer.alloc(0), requestId: 'rq', receivedAt: 0 },
    };
    const event = toGatewayEvent(request, { routeKey: 'GET /v1/slow', pathParameters: {} });
    const context = {
      ...invocationContext(composition, 'slow', 'rq'),
      getRemainingTimeInMillis: () => answerReserveMs + hasMs,
    };
    const { statusCode, body } = fromGatewayResult(await slow(event, context));
    return { statusCode, code: JSON.parse(body.toString()).code };
  };
  const answers = await Promise.all([ask('acme', 400, 5_000), ask('globex', 60_000, 100), ask('initech', 500, 5_000)]);
  expect(answers).toEqual([{ statusCode: 200 }, { statusCode: 504, code: 'deadline_exceeded' }, { statusCode: 200 }]);
});
