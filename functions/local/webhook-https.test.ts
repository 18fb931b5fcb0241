/** Webhooks over TLS: the certificate must be for the name in the URL, regardless of the address it was resolved to. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWebhookHttp } from '#control/adapters/webhook-http/webhook-http.ts';
import { servingCertificates } from './certificates.ts';

let dir = '';
let ca = '';
let port = 0;
let server: Server;
let hits = 0;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-webhook-tls-'));
  const tls = await servingCertificates(dir, ['hook.example'], Date.now());
  ca = tls.caPem;
  server = createServer({ cert: tls.certPem, key: tls.keyPem }, (request, response) => {
    hits += 1;
    response.end(`${request.method} ${request.headers.host}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(dir, { recursive: true, force: true });
});

const toLoopback = ((_name: string, options: { all?: boolean }, callback: (...args: unknown[]) => void) =>
  options.all
    ? callback(null, [{ address: '127.0.0.1', family: 4 }])
    : callback(null, '127.0.0.1', 4)) as unknown as LookupFunction;
const sender = (trusted: string | undefined) =>
  createWebhookHttp({ allowPrivateAddresses: true, lookup: toLoopback, ...(trusted !== undefined && { ca: trusted }) });
const post = { headers: {}, body: '{}' };

test('a receiver with a certificate for its name is posted to', async () => {
  const outcome = await sender(ca).post({ url: `https://hook.example:${port}/`, ...post });
  expect(outcome).toEqual({ status: 200, text: `POST hook.example:${port}` });
});

test.each([
  { what: 'for another name', name: 'other.example', trusted: true },
  { what: 'of an unknown authority', name: 'hook.example', trusted: false },
])('one with a certificate $what gets nothing', async ({ name, trusted }) => {
  const before = hits;
  const outcome = await sender(trusted ? ca : undefined).post({ url: `https://${name}:${port}/`, ...post });
  expect(outcome).toEqual({ error: expect.stringMatching(/certificate|altnames/i) });
  expect(hits).toBe(before);
});
