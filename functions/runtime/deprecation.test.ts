import { expect, test } from 'vitest';
import { toGatewayEvent } from '#functions/local/gateway-event.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { operation } from '#functions/openapi.ts';
import { createApiFixture } from '#functions/testing/api-fixture.ts';
import { http } from './http.ts';

const deprecated = {
  since: '2027-01-01T00:00:00Z',
  until: '2028-02-01T00:00:00Z',
  instead: 'use GET /v1/peers',
} as const;
const old = http(
  {
    method: 'GET',
    path: '/v1/old',
    summary: 'An operation that goes away',
    description: 'Lists them.',
    auth: 'key',
    deprecated,
    answers: { 200: { description: 'They.' } },
  },
  async () => ({ body: { items: [] } }),
);

test('answers and refusals of a deprecated operation say since when, and when it will be gone', async () => {
  const { composition, tenant } = await createApiFixture();
  const key = await tenant('acme');
  for (const [authorization, status] of [
    [`Bearer ${key}`, 200],
    ['Bearer isk_wrong', 401],
  ] as const) {
    const request = {
      ...{ method: 'GET', url: '/v1/old', headers: { authorization }, sourceIp: '192.0.2.1' },
      ...{ body: Buffer.alloc(0), requestId: 'rq', receivedAt: 0 },
    };
    const event = toGatewayEvent(request, { routeKey: 'GET /v1/old', pathParameters: {} });
    const answer = await old(event, invocationContext(composition, 'old', 'rq'));
    expect(answer).toMatchObject({
      statusCode: status,
      headers: {
        deprecation: '@1798761600',
        sunset: 'Tue, 01 Feb 2028 00:00:00 GMT',
        link: '</v1/openapi.json>; rel="deprecation"; type="application/json"',
      },
    });
  }
});

test('the document marks it, and says what to use', () => {
  expect(operation('listOld', old.route)).toMatchObject({
    deprecated: true,
    description:
      'Lists them. Deprecated since 2027-01-01T00:00:00Z, gone from 2028-02-01T00:00:00Z on: use GET /v1/peers.',
    responses: { 200: { headers: { Deprecation: expect.anything(), Sunset: expect.anything() } } },
  });
});
