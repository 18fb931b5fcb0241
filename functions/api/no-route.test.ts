import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import { expect, test } from 'vitest';
import { Problem } from '#shared/schema/api/resources.ts';
import { handler } from './no-route.ts';

const ask = (method: string, rawPath: string) =>
  handler({
    rawPath,
    requestContext: { requestId: 'rq_1', http: { method } },
  } as unknown as APIGatewayProxyEventV2);

test.each([
  { method: 'GET', path: '/', status: 404, code: 'not_found' },
  { method: 'GET', path: '/v1/nothing', status: 404, code: 'not_found' },
  { method: 'GET', path: '/v1/clusters/', status: 404, code: 'not_found' },
  { method: 'PUT', path: '/v1/clusters/rome', status: 405, code: 'method_not_allowed' },
  { method: 'GET', path: '/v1/health', status: 404, code: 'not_found' },
])(
  '$method $path, sent here by the gateway, is answered $status as a problem',
  async ({ method, path, status, code }) => {
    const { statusCode, headers, body } = await ask(method, path);
    expect([statusCode, headers?.['content-type'], headers?.['x-request-id']]).toEqual([
      status,
      'application/problem+json',
      'rq_1',
    ]);
    expect(Problem.parse(JSON.parse(body ?? ''))).toMatchObject({ code, status, requestId: 'rq_1' });
  },
);

test('405 names what the path has', async () => {
  const { headers } = await ask('PUT', '/v1/clusters/rome');
  expect(headers?.allow).toBe('DELETE, GET, PATCH');
});
