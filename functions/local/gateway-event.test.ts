import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fromGatewayResult, type ReceivedRequest, readBody, toGatewayEvent } from './gateway-event.ts';

const route = { routeKey: 'GET /v1/things/{name}', pathParameters: { name: 'a%20b' } };
const request = (over: Partial<ReceivedRequest> = {}): ReceivedRequest => ({
  method: 'GET',
  url: '/v1/things/a%20b',
  headers: { host: 'broker.example.com:8443' },
  sourceIp: '192.0.2.7',
  body: Buffer.alloc(0),
  requestId: 'req_1',
  receivedAt: 0,
  ...over,
});

describe('the API Gateway v2 event of a local request', () => {
  test('keeps the raw path percent-encoded and names no stage in it', () => {
    const event = toGatewayEvent(request(), route);
    expect(event.rawPath).toBe('/v1/things/a%20b');
    expect(event.requestContext.http.path).toBe('/v1/things/a%20b');
    expect(event.requestContext.stage).toBe('$default');
    expect(event.pathParameters).toEqual({ name: 'a%20b' });
  });

  test('joins repeated query keys by a comma and decodes values', () => {
    const event = toGatewayEvent(request({ url: '/v1/things/x?a=1&b=x%20y&a=2&flag&c=p+q' }), route);
    expect(event.queryStringParameters).toEqual({ a: '1,2', b: 'x y', flag: '', c: 'p q' });
    expect(event.rawQueryString).toBe('a=1&b=x%20y&a=2&flag&c=p+q');
  });

  test('has no query parameters at all when there is no query', () => {
    expect(toGatewayEvent(request(), route)).not.toHaveProperty('queryStringParameters');
  });

  test('carries cookies in a list and not as a header', () => {
    const event = toGatewayEvent(request({ headers: { host: 'h', cookie: 'a=1; b=2' } }), route);
    expect(event.cookies).toEqual(['a=1', 'b=2']);
    expect(event.headers).toEqual({ host: 'h' });
  });

  test('lower-cases header names and joins repeated headers', () => {
    const event = toGatewayEvent(request({ headers: { 'X-Thing': ['1', '2'], Accept: 'x' } as never }), route);
    expect(event.headers).toEqual({ 'x-thing': '1,2', accept: 'x' });
  });

  test('passes JSON bodies as text', () => {
    const event = toGatewayEvent(
      request({ headers: { 'content-type': 'application/json; charset=utf-8' }, body: Buffer.from('{"ä":1}') }),
      route,
    );
    expect(event).toMatchObject({ body: '{"ä":1}', isBase64Encoded: false });
  });

  test('passes any other body as base64', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1 }), (bytes) => {
        const event = toGatewayEvent(
          request({ headers: { 'content-type': 'application/octet-stream' }, body: Buffer.from(bytes) }),
          route,
        );
        expect(event.isBase64Encoded).toBe(true);
        expect(new Uint8Array(Buffer.from(event.body ?? '', 'base64'))).toEqual(bytes);
      }),
    );
  });

  test('never throws on what a client may put into the URL', () => {
    fc.assert(
      fc.property(fc.webQueryParameters(), fc.string(), (query, noise) => {
        toGatewayEvent(request({ url: `/v1/x?${query}&${noise}` }), route);
      }),
    );
  });
});

describe('the HTTP response of a handler result', () => {
  test('of a plain object is JSON with status 200', () => {
    const response = fromGatewayResult({ hello: 1 } as never);
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('application/json');
    expect(response.body.toString()).toBe('{"hello":1}');
  });

  test('turns each cookie into a header of its own', () => {
    const response = fromGatewayResult({ statusCode: 204, cookies: ['a=1', 'b=2'] });
    expect(response.headers['set-cookie']).toEqual(['a=1', 'b=2']);
  });

  test('decodes base64 bodies', () => {
    const response = fromGatewayResult({ statusCode: 200, body: 'AAEC', isBase64Encoded: true });
    expect([...response.body]).toEqual([0, 1, 2]);
  });

  test('lower-cases header names and keeps values as text', () => {
    const response = fromGatewayResult({ statusCode: 200, headers: { ETag: '"1"', 'X-Count': 3 } });
    expect(response.headers).toEqual({ etag: '"1"', 'x-count': '3' });
  });
});

test('a body that came in any pieces is whole, in one piece of at most twice its size, and nothing beyond the limit', async () => {
  const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 200 }), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(pieces, fc.nat({ max: 6_000 }), async (chunks, limit) => {
      const message = Readable.from(chunks.map((chunk) => Buffer.from(chunk))) as unknown as IncomingMessage;
      const whole = Buffer.concat(chunks);
      const body = await readBody(message, limit);
      expect(body === undefined).toBe(whole.length > limit);
      if (body === undefined) return;
      expect(body.equals(whole)).toBe(true);
      expect(body.buffer.byteLength).toBeLessThanOrEqual(2 * whole.length);
    }),
  );
  // A letter at a time, each of which would be an object of a hundred bytes.
  const letters = Readable.from(Array.from({ length: 5_000 }, () => Buffer.from('x'))) as unknown as IncomingMessage;
  const body = await readBody(letters, 6_000);
  expect([body?.length, (body?.buffer.byteLength ?? 0) <= 10_000]).toEqual([5_000, true]);
});
