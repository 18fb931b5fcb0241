import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import document from '#functions/api/openapi.json' with { type: 'json' };
import { httpFunctions } from '#functions/routes.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { type ApiFixture, createApiFixture } from '#functions/testing/api-fixture.ts';
import type { Log } from '#shared/ports/log.ts';
import { createRouter } from './gateway-router.ts';
import { answerBrokenRequest, createHttpGateway } from './http-gateway.ts';

const errors: unknown[] = [];
const log: Log = {
  with: () => log,
  debug() {},
  info() {},
  warn() {},
  error: (message, error) => void errors.push([message, error]),
};

let clusters: ApiFixture;
let server: Server;
let key = '';
beforeAll(async () => {
  clusters = await createApiFixture({ log });
  key = await clusters.tenant('acme');
  server = createServer(
    createHttpGateway(
      clusters.composition,
      createRouter(httpFunctions),
      createSystemIds(() => Date.now()),
    ),
  );
  server.on('clientError', answerBrokenRequest);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** Sends raw bytes, returns the raw answer. */
function raw(bytes: Buffer | string): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      const text = Buffer.concat(chunks).toString('latin1');
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text });
    });
    socket.write(bytes);
  });
}

function request(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body: Buffer = Buffer.alloc(0),
) {
  const fields = {
    host: 'x',
    connection: 'close',
    authorization: `Bearer ${key}`,
    'content-length': String(body.length),
    ...headers,
  };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return raw(Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${head.join('')}\r\n`, 'latin1'), body]));
}
const codeIn = (text: string): string | undefined => /"code":"(\w+)"/.exec(text)?.[1];
const json = { 'content-type': 'application/json' };

describe('a request that is broken gets its own answer', () => {
  test.each([
    {
      what: 'headers beyond 16 KiB',
      headers: { 'x-much': 'x'.repeat(20_000) },
      status: 431,
      code: 'headers_too_large',
    },
    {
      what: 'a query beyond 16 KiB',
      path: `/v1/clusters?limit=${'1'.repeat(20_000)}`,
      status: 431,
      code: 'headers_too_large',
    },
    {
      what: 'a body beyond the limit of the route',
      headers: json,
      body: Buffer.alloc(300_000, 0x20),
      status: 413,
      code: 'too_large',
    },
    {
      what: 'a body beyond what the cloud takes',
      headers: json,
      body: Buffer.alloc(7_000_000, 0x20),
      status: 413,
      code: 'too_large',
    },
    { what: 'no content type', body: Buffer.from('{}'), status: 415, code: 'unsupported_media_type' },
    {
      what: 'a form',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: Buffer.from('a=1'),
      status: 415,
      code: 'unsupported_media_type',
    },
    {
      what: 'bytes that are no UTF-8',
      headers: json,
      body: Buffer.from([0x22, 0xff, 0x22]),
      status: 400,
      code: 'malformed_request',
    },
    {
      what: 'deep nesting',
      headers: json,
      body: Buffer.from('['.repeat(200_000)),
      status: 400,
      code: 'malformed_request',
    },
    {
      what: 'a name twice',
      headers: json,
      body: Buffer.from('{"name":"a","name":"b","role":"admin"}'),
      status: 400,
      code: 'malformed_request',
    },
    {
      what: 'an unknown field',
      headers: json,
      body: Buffer.from('{"name":"a","role":"viewer","admin":true}'),
      status: 422,
      code: 'invalid_input',
    },
    { what: 'a null body', headers: json, body: Buffer.from('null'), status: 422, code: 'invalid_input' },
  ])('$what', async ({ path = '/v1/keys', headers = {}, body, status, code }) => {
    const method = path === '/v1/keys' ? 'POST' : 'GET';
    const answer = await request(method, path, headers, body);
    expect([answer.status, codeIn(answer.text)]).toEqual([status, code]);
  });

  test('a body that goes on after its refusal is read to its end, so that the answer arrives', async () => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [size, part] = [20_000_000, Buffer.alloc(7_000_000, 0x20)];
    const head = `POST /v1/keys HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${size}\r\n\r\n`;
    let text = '';
    const told = new Promise<void>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
        if (text.includes('too_large')) resolve();
      });
    });
    socket.write(head);
    socket.write(part);
    await told;
    const closed = new Promise<boolean>((resolve, reject) => socket.on('close', resolve).on('error', reject));
    socket.write(part);
    socket.write(Buffer.alloc(size - 2 * part.length, 0x20));
    expect([await closed, /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]]).toEqual([false, '413']);
  });

  test.each([
    'GET / HTTP/9\r\n\r\n',
    'nonsense\r\n\r\n',
    `GET /v1/clusters HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n`,
    'POST /v1/keys HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n',
  ])('what is no HTTP (%#)', async (bytes) => {
    const answer = await raw(bytes);
    expect([answer.status, codeIn(answer.text)]).toEqual([400, 'malformed_request']);
  });

  test('two hosts, of which a proxy may take the other', async () => {
    const head = `connection: close\r\nauthorization: Bearer ${key}\r\n`;
    const answer = await raw(`GET /v1/clusters HTTP/1.1\r\nhost: a\r\nHost: b\r\n${head}\r\n`);
    expect([answer.status, codeIn(answer.text)]).toEqual([400, 'malformed_request']);
  });

  test.each(['1e2', '0x10', '', '%201', '+5', '1_0'])('the number %s in a query', async (text) => {
    const answer = await request('GET', `/v1/clusters?limit=${text}`);
    expect([answer.status, codeIn(answer.text)]).toEqual([422, 'invalid_input']);
  });

  test('HEAD gets the headers of GET and no body', async () => {
    const [head, get] = [await request('HEAD', '/v1/clusters'), await request('GET', '/v1/clusters')];
    expect(head.status).toBe(200);
    expect(head.text.split('\r\n\r\n')[1]).toBe('');
    const lengthOf = (text: string) => /content-length: (\d+)/.exec(text)?.[1];
    expect(lengthOf(head.text)).toBe(lengthOf(get.text));
  });

  test('an unknown query parameter is named', async () => {
    const { status, text } = await request('GET', '/v1/clusters?includeLeave=true');
    expect([status, text]).toEqual([422, expect.stringContaining('includeLeave')]);
  });

  test.each(['%', '%zz', '%00', '%ff', 'a%2Fb', '%F0%9F%98%80', 'x'.repeat(1_000), '..', '__proto__', 'constructor'])(
    'the name %s in a path is not found',
    async (name) => {
      const { status, text } = await request('GET', `/v1/clusters/${name}`);
      expect([status, codeIn(text)]).toEqual([404, 'not_found']);
    },
  );
});

/** Everything that a client can put into a request, on every route. */
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
);
const junk = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1e309',
    'null',
    '../../etc/passwd',
    '%00',
    "'; drop table items; --",
    'jndi:ldap:x',
    '<script>',
    'a'.repeat(2_000),
  ),
);
const anyJson = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.dictionary(
    fc.constantFrom(
      'name',
      'role',
      'cluster',
      'consumer',
      'provider',
      'resources',
      'limits',
      'scopes',
      'url',
      'sets',
      'facts',
      'constructor',
    ),
    fc.jsonValue(),
    { maxKeys: 6 },
  ),
);
const body = fc.oneof(
  { weight: 4, arbitrary: anyJson.map((value) => Buffer.from(JSON.stringify(value))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
);
const headerValue = fc.string({
  unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
  maxLength: 60,
});
const attempt = fc.record({
  operation: fc.constantFrom(...operations),
  parameter: junk,
  query: fc.dictionary(
    fc.constantFrom('limit', 'cursor', 'subject', 'force', 'confirm', 'consumer', 'provider', 'labels', 'x'),
    junk,
    { maxKeys: 3 },
  ),
  body,
  type: fc.constantFrom('application/json', 'application/json', 'text/plain', ''),
  operator: fc.boolean(),
  headers: fc.dictionary(
    fc.constantFrom(
      'if-match',
      'if-none-match',
      'idempotency-key',
      'isthmus-tenant',
      'cookie',
      'x-forwarded-for',
      'accept',
    ),
    headerValue,
    { maxKeys: 3 },
  ),
});

test('no request of any form makes any route fail, and every refusal is a problem document with a code', async () => {
  await fc.assert(
    fc.asyncProperty(attempt, async ({ operation, parameter, query, body: sent, type, operator, headers }) => {
      const path = operation.path.replaceAll(
        /\{\w+\}/g,
        encodeURIComponent(parameter.isWellFormed() ? parameter : 'x') || 'x',
      );
      const search = new URLSearchParams(query).toString();
      const { status, text } = await request(
        operation.method,
        search === '' ? path : `${path}?${search}`,
        {
          ...headers,
          ...(type !== '' && { 'content-type': type }),
          ...(operator && { authorization: `Bearer ${clusters.operatorKey}` }),
        },
        operation.method === 'GET' ? Buffer.alloc(0) : sent,
      );
      // A provider that does not answer is no defect of ours.
      if (status === 503 && codeIn(text) === 'issuer_unreachable') return;
      expect(status, text).toBeGreaterThanOrEqual(200);
      expect(status, text).toBeLessThan(500);
      if (status >= 400) expect(codeIn(text), text).toBeDefined();
    }),
    { numRuns: 1_500 },
  );
  expect(errors).toEqual([]);
  expect((await request('GET', '/v1/health')).status).toBe(200);
}, 60_000);
