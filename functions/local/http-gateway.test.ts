import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Composition } from '#functions/runtime/composition.ts';
import type { HttpFunction } from '#functions/runtime/http.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { eventually } from '#test/harness/eventually.ts';
import { createRouter } from './gateway-router.ts';
import { createHttpGateway, maxBodyBytes } from './http-gateway.ts';

/** Answers with the event that it was given. */
const echo = (method: 'GET' | 'POST', path: string): HttpFunction =>
  Object.assign(async (event: APIGatewayProxyEventV2) => ({ statusCode: 200, body: JSON.stringify(event) }), {
    route: { method, path },
  }) as unknown as HttpFunction;
const baking: HttpFunction = Object.assign(
  async () => ({
    statusCode: 201,
    cookies: ['a=1', 'b=2'],
    headers: { 'X-Made': 'yes' },
    body: 'AAEC',
    isBase64Encoded: true,
  }),
  { route: { method: 'GET', path: '/bake' } },
) as unknown as HttpFunction;
const failing: HttpFunction = Object.assign(() => Promise.reject(new Error('a defect with a secret')), {
  route: { method: 'GET', path: '/fail' },
}) as unknown as HttpFunction;

let server: Server;
beforeAll(async () => {
  const clock = new ManualClock();
  const composition = { clock, log: silentLog, version: '0' } as unknown as Composition;
  const router = createRouter([echo('GET', '/v1/things/{name}'), echo('POST', '/v1/things'), baking, failing]);
  server = createServer(
    createHttpGateway(
      composition,
      router,
      createSystemIds(() => clock.now()),
    ),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}
const ask = (method: string, path: string, headers: Record<string, string | string[]> = {}, body?: Buffer | string) =>
  new Promise<Got>((resolve, reject) => {
    const { port } = server.address() as AddressInfo;
    const sent = request({ port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
const event = async (...args: Parameters<typeof ask>): Promise<APIGatewayProxyEventV2> =>
  JSON.parse((await ask(...args)).body.toString());

describe('a function behind the local gateway sees', () => {
  test('the raw path, the raw query and decoded, joined query values', async () => {
    expect(await event('GET', '/v1/things/a%2Fb%20c?x=1&y=%C3%A4&x=2')).toMatchObject({
      rawPath: '/v1/things/a%2Fb%20c',
      rawQueryString: 'x=1&y=%C3%A4&x=2',
      queryStringParameters: { x: '1,2', y: 'ä' },
      pathParameters: { name: 'a%2Fb%20c' },
      requestContext: {
        http: { method: 'GET', path: '/v1/things/a%2Fb%20c', sourceIp: '127.0.0.1' },
        stage: '$default',
      },
    });
  });

  test('lower-case headers, repeated ones joined, and cookies apart', async () => {
    const seen = await event('GET', '/v1/things/x', { 'X-Many': ['1', '2'], Cookie: 'a=1; b=2' });
    expect(seen.headers['x-many']).toBe('1, 2');
    expect(seen.headers).not.toHaveProperty('cookie');
    expect(seen.cookies).toEqual(['a=1', 'b=2']);
  });

  test('text bodies as text and any other in base64', async () => {
    const json = await event('POST', '/v1/things', { 'content-type': 'application/json' }, '{"ä":1}');
    expect(json).toMatchObject({ body: '{"ä":1}', isBase64Encoded: false });
    const raw = await event(
      'POST',
      '/v1/things',
      { 'content-type': 'application/octet-stream' },
      Buffer.from([0, 255]),
    );
    expect(raw).toMatchObject({ body: 'AP8=', isBase64Encoded: true });
  });
});

describe('a client behind the local gateway gets', () => {
  test('status, headers, one header for each cookie and decoded bytes', async () => {
    const { status, headers, body } = await ask('GET', '/bake');
    expect([status, headers['x-made'], headers['set-cookie'], [...body]]).toEqual([
      201,
      'yes',
      ['a=1', 'b=2'],
      [0, 1, 2],
    ]);
  });

  test('a problem for a body beyond the limit of the cloud', async () => {
    const { status, body } = await ask('POST', '/v1/things', {}, Buffer.alloc(maxBodyBytes + 1));
    expect([status, JSON.parse(body.toString()).code]).toEqual([413, 'too_large']);
  });

  test('a problem that tells nothing of a defect', async () => {
    const { status, body } = await ask('GET', '/fail');
    expect([status, JSON.parse(body.toString()).code]).toEqual([500, 'internal']);
    expect(body.toString()).not.toContain('secret');
  });
});

test('a request whose client has left before its turn came is neither begun nor counted as answered', async () => {
  const begun: string[] = [];
  const told: number[] = [];
  const run = Object.assign(
    async (event: APIGatewayProxyEventV2) => {
      begun.push(event.pathParameters?.name ?? '');
      return { statusCode: 200, body: '' };
    },
    { route: { method: 'GET', path: '/v1/things/{name}' } },
  ) as unknown as HttpFunction;
  const waiting: (() => void)[] = [];
  const turns = { take: () => new Promise<void>((resolve) => void waiting.push(resolve)) };
  const clock = new ManualClock();
  const queueing = createServer(
    createHttpGateway(
      { clock, log: silentLog, version: '0' } as unknown as Composition,
      createRouter([run]),
      createSystemIds(() => clock.now()),
      { turns, onAnswer: (_route, status) => told.push(status) },
    ),
  );
  let left: Promise<unknown> | undefined;
  queueing.once('connection', (socket) => {
    left = new Promise((resolve) => socket.once('close', resolve));
  });
  await new Promise<void>((resolve) => queueing.listen(0, '127.0.0.1', resolve));
  const { port } = queueing.address() as AddressInfo;
  const gone = request({ port, path: '/v1/things/gone', agent: false }).on('error', () => undefined);
  gone.end();
  await eventually('the first waits', () => waiting.length === 1);
  gone.destroy();
  await left;
  const stays = new Promise((resolve, reject) => {
    request({ port, path: '/v1/things/stays', agent: false }, (response) => response.on('end', resolve).resume())
      .on('error', reject)
      .end();
  });
  await eventually('the second waits', () => waiting.length === 2);
  for (const go of waiting) go();
  await stays;
  expect([begun, told]).toEqual([['stays'], [200]]);
  await new Promise((resolve) => queueing.close(resolve));
});
