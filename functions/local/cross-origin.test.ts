/** Pages of other origins at a real local broker: what a browser asks first, and what it lets them read. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import document from '#functions/api/openapi.json' with { type: 'json' };
import {
  crossOriginAnswerHeaders,
  crossOriginMethods,
  crossOriginRequestHeaders,
} from '#shared/domain/cross-origin.ts';
import { silentLog } from '#shared/ports/log.ts';
import { send as sendBytes } from '#test/harness/raw-bytes.ts';
import { type Broker, startBroker } from './broker.ts';
import { type Answer, send } from './scripted-agent.ts';

const portal = 'https://portal.example.com';
let dir = '';
let broker: Broker;
const start = (corsOrigins: readonly string[]): Promise<Broker> =>
  startBroker({ dataDir: dir, listen: '127.0.0.1:0', corsOrigins, log: silentLog, version: '0.1.0' });

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-cors-'));
  broker = await start([portal, 'http://localhost:5173']);
});
afterAll(async () => {
  await broker.close();
  await rm(dir, { recursive: true, force: true });
});

const ask = (method: string, at: string, headers: Record<string, string>): Promise<Answer> =>
  send({ method, url: broker.url + at, ca: broker.caPem, headers });
const preflight = (origin: string, at = '/v1/peerings'): Promise<Answer> =>
  ask('OPTIONS', at, { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'if-match' });
const listOf = (answer: Answer, header: string): string[] => String(answer.headers[header]).split(',');
const corsOf = ({ headers }: Answer): string[] =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'));

test('the preflight of a named origin is answered without credentials, with every method and header that the API has', async () => {
  const answer = await preflight(portal);
  expect(answer.status).toBe(204);
  expect(answer.headers['access-control-allow-origin']).toBe(portal);
  expect(answer.headers.vary).toBe('origin');
  expect(listOf(answer, 'access-control-allow-methods')).toEqual([...crossOriginMethods]);
  expect(listOf(answer, 'access-control-allow-headers')).toEqual([...crossOriginRequestHeaders]);
  expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
});

test.each(['https://evil.example.com', 'https://portal.example.com.evil.example', 'null', 'http://localhost:5174'])(
  'a page of %s is refused at its preflight, and may read no answer',
  async (origin) => {
    const refused = await preflight(origin);
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
    const answered = await ask('GET', '/v1/tenant', { origin, authorization: `Bearer ${broker.adminKey}` });
    expect(answered.status).toBe(200);
    expect([...corsOf(refused), ...corsOf(answered)]).toEqual([]);
  },
);

// Side by side: the broker waits ten seconds for the rest of such a body.
test.concurrent.each([portal, 'https://evil.example.com'])(
  'the connection of a preflight of %s that announces a body and never sends it is closed with the answer',
  async (origin) => {
    const asked = { origin, host: 'x', 'access-control-request-method': 'POST', 'content-length': '1000' };
    const lines = Object.entries(asked).map(([name, value]) => `${name}: ${value}\r\n`);
    const bytes = Buffer.from(`OPTIONS /v1/peerings HTTP/1.1\r\n${lines.join('')}\r\n`);
    const target = { port: broker.port, ca: broker.caPem };
    const { text } = await sendBytes(target, { pieces: [bytes], ending: 'stay', withoutTls: false });
    expect(text.toLowerCase()).toContain('connection: close');
  },
);

test('answers and refusals alike can be read by a page of a named origin', async () => {
  for (const authorization of [`Bearer ${broker.adminKey}`, 'Bearer isk_wrong']) {
    const answer = await ask('GET', '/v1/tenant', { origin: portal, authorization });
    expect(answer.headers['access-control-allow-origin']).toBe(portal);
    expect(listOf(answer, 'access-control-expose-headers')).toEqual([...crossOriginAnswerHeaders]);
  }
});

test('what is no API is of its own origin alone: the session of the console, readiness', async () => {
  for (const at of ['/console/session', '/ready']) {
    expect(corsOf(await preflight(portal, at))).toEqual([]);
    expect(corsOf(await ask('GET', at, { origin: portal }))).toEqual([]);
  }
});

test('every header of the API document can be sent and read, and every method used', () => {
  const text = JSON.stringify(document);
  const operations = Object.values(document.paths as unknown as Record<string, Record<string, object>>);
  const methods = new Set(operations.flatMap((path) => Object.keys(path).map((method) => method.toUpperCase())));
  expect([...crossOriginMethods]).toEqual(expect.arrayContaining([...methods]));
  const sent = [...text.matchAll(/"name":"([^"]+)","in":"header"/g)].map(([, name = '']) => name.toLowerCase());
  // Webhooks are requests of the broker.
  const heeded = new Set(sent.filter((name) => !name.startsWith('webhook-')));
  expect(heeded.size).toBeGreaterThan(1);
  expect([...crossOriginRequestHeaders]).toEqual(expect.arrayContaining([...heeded]));
  const answered = Object.keys(document.components.headers).map((name) => name.toLowerCase());
  expect([...crossOriginAnswerHeaders]).toEqual(expect.arrayContaining([...answered, 'location', 'x-request-id']));
});

test.each(['*', 'https://portal.example.com/', 'portal.example.com', 'http://portal.example.com'])(
  'a broker does not start for the origin %s',
  async (origin) => {
    await expect(start([origin])).rejects.toMatchObject({ code: 'invalid_input', detail: { field: 'cors-origin' } });
  },
);
