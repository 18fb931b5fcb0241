/** A portal of its own origin in Debian's Chromium, at a real broker: with a token of an identity provider and the API alone. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type IdentityProvider, startIdentityProvider } from '#control/testing/identity-provider.ts';
import { openBrowser, visit } from './browser.ts';
import { adminOf, type ConsoleBroker, startConsoleBroker } from './console-broker.ts';

let broker: ConsoleBroker;
let browser: Browser;
let provider: IdentityProvider;
const servers: Server[] = [];

/** An empty page on an origin of its own. */
async function pageServer(): Promise<string> {
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Portal</title>'),
  );
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

let portal = '';
let stranger = '';
beforeAll(async () => {
  [portal, stranger] = await Promise.all([pageServer(), pageServer()]);
  [broker, browser, provider] = await Promise.all([
    startConsoleBroker({ idle: true, corsOrigins: [portal] }),
    openBrowser(),
    startIdentityProvider(['anna']),
  ]);
  await broker
    .broker()
    .control.tenants.issuers.register(adminOf(), { url: provider.url, audience: 'https://portal.isthmus.test' });
  await broker
    .broker()
    .control.tenants.members.add(adminOf(), { issuer: provider.url, subject: 'anna', role: 'admin' });
});
afterAll(async () => {
  await browser?.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await provider?.close();
  await broker?.close();
});

interface Seen {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: answers have every shape
  readonly body?: any;
  readonly blocked?: string;
}

/** What a script of the page gets, as browsers give it. */
const fetched = (page: Page, path: string, init: object = {}): Promise<Seen> =>
  page.evaluate(
    async ([url, options]) => {
      try {
        const response = await fetch(url as string, options as RequestInit);
        return {
          status: response.status,
          headers: Object.fromEntries(response.headers.entries()),
          body: await response.json().catch(() => undefined),
        };
      } catch (error) {
        return { blocked: String(error) };
      }
    },
    [`${broker.url}${path}`, init] as const,
  );

test('a portal reads, steers by ETag, limits and request id, and changes, with a token of its provider', async () => {
  const { page, close } = await visit(browser, { url: portal });
  const token = await provider.token('anna', { audience: 'https://portal.isthmus.test' });
  const headers = { authorization: `Bearer ${token}`, 'isthmus-tenant': 'default' };
  const read = await fetched(page, '/v1/tenant', { headers });
  expect(read).toMatchObject({ status: 200, body: { name: 'default' } });
  expect(Object.keys(read.headers ?? {})).toEqual(
    expect.arrayContaining(['etag', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'x-request-id']),
  );
  const change = (etag: string): Promise<Seen> =>
    fetched(page, '/v1/tenant', {
      method: 'PATCH',
      headers: { ...headers, 'content-type': 'application/json', 'if-match': etag },
      body: JSON.stringify({ displayName: 'From a portal' }),
    });
  expect(await change('"999"')).toMatchObject({ status: 412, body: { code: 'precondition_failed' } });
  expect(await change(read.headers?.etag ?? '')).toMatchObject({ status: 200, body: { displayName: 'From a portal' } });
  const repeated = {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': 'one' },
  };
  const body = JSON.stringify({ name: 'ci', role: 'viewer' });
  expect((await fetched(page, '/v1/keys', { ...repeated, body })).status).toBe(201);
  expect((await fetched(page, '/v1/keys', { ...repeated, body })).headers).toHaveProperty(
    'idempotency-replayed',
    'true',
  );
  await close();
});

test('a page of another origin reads nothing and changes nothing, and no page sends the cookie of a session', async () => {
  const headers = { authorization: `Bearer ${broker.key}`, 'content-type': 'application/json' };
  const { page, close } = await visit(browser, { url: stranger });
  expect((await fetched(page, '/v1/tenant', { headers })).blocked).toContain('Failed to fetch');
  const change = { method: 'PATCH', headers, body: JSON.stringify({ displayName: 'Stolen' }) };
  expect((await fetched(page, '/v1/tenant', change)).blocked).toContain('Failed to fetch');
  await close();
  const { page: friend, close: closeFriend } = await visit(browser, { url: portal });
  // Answers to requests with cookies are kept from every page.
  expect((await fetched(friend, '/v1/tenant', { headers, credentials: 'include' })).blocked).toContain(
    'Failed to fetch',
  );
  expect((await fetched(friend, '/v1/tenant', { headers })).body.displayName).not.toBe('Stolen');
  await closeFriend();
});
