/** Logging in by a real OpenID provider (oidc-provider) with PKCE, in Debian's Chromium, at a real broker. */
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { logIn, openBrowser, visit } from './browser.ts';
import { type ConsoleBroker, startConsoleBroker } from './console-broker.ts';

let console: ConsoleBroker;
let browser: Browser;
let server: Server;
let issuer = '';
const client = 'isthmus-console';

interface ProviderClass {
  new (issuer: string, options: unknown): { callback(): RequestListener };
}

beforeAll(async () => {
  [console, browser] = await Promise.all([startConsoleBroker(), openBrowser()]);
  let handle: RequestListener = () => undefined;
  server = createServer((request, response) => handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // Its package has no types.
  const name: string = 'oidc-provider';
  const { default: Provider } = (await import(name)) as { default: ProviderClass };
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' }] },
    clients: [
      {
        client_id: client,
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code'],
        response_types: ['code'],
        redirect_uris: [`${console.url}/`],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    clientBasedCORS: (_context: unknown, origin: string) => origin === console.url,
    cookies: { keys: ['test'] },
    pkce: { required: () => true },
  });
  handle = provider.callback();
  await setUp();
});

/** By clicks, as the admin of the tenant. */
async function setUp(): Promise<void> {
  const seen = await visit(browser, { url: console.url });
  const { page } = seen;
  await logIn(seen, console.key);
  await page.goto(`${console.url}/#/access`);
  await page.getByRole('button', { name: 'Register a provider' }).click();
  await page.getByLabel('URL of the issuer').fill(issuer);
  await page.getByLabel('Audience').fill(client);
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await page.getByRole('cell', { name: client }).waitFor();
  await page.getByRole('button', { name: 'Add a member' }).click();
  await page.getByLabel('Issuer', { exact: true }).fill(issuer);
  await page.getByLabel('Subject', { exact: true }).fill('anna');
  await page.getByLabel('Role', { exact: true }).selectOption('operator');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('cell', { name: `anna of ${issuer}` }).waitFor();
  await seen.close();
}

afterAll(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
  await console?.close();
});

async function atProvider(page: Page, user: string): Promise<void> {
  await page.getByLabel('Issuer').fill(issuer);
  await page.getByLabel('Client ID').fill(client);
  await page.getByRole('button', { name: 'Go to the provider' }).click();
  await page.getByPlaceholder('Enter any login').fill(user);
  await page.getByPlaceholder('and password').fill('any');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
}

test('a member logs in by the provider of the tenant, has its role, and stays logged in when the page is loaded again', async () => {
  const { page, close } = await visit(browser, { url: console.url });
  await atProvider(page, 'anna');
  await page.getByText('default (operator)').waitFor();
  expect(new URL(page.url()).search).toBe('');
  expect(await page.evaluate('Object.values(sessionStorage).join()')).toBe('');
  await page.reload();
  await page.getByText('default (operator)').waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  // Its login is remembered, but for the secret parts.
  expect(await page.getByLabel('Issuer').inputValue()).toBe(issuer);
  await close();
});

test('an account that is no member is refused in words', async () => {
  const { page, close } = await visit(browser, { url: console.url });
  await atProvider(page, 'mallory');
  await page.getByRole('alert').waitFor();
  await page.getByLabel('API key').waitFor();
  await close();
});

test('an answer of a provider that this page did not ask for is not used', async () => {
  const { page, close } = await visit(browser, { url: console.url });
  for (const query of [
    `code=stolen&state=guessed&issuer=${encodeURIComponent(issuer)}`,
    'code=stolen&state=guessed',
    `issuer=${encodeURIComponent(issuer)}`,
  ]) {
    await page.goto(`${console.url}/?${query}`);
    await page.getByText('begin again').waitFor();
  }
  await close();
});

test('the page may ask the provider that its address names, and only that one', async () => {
  const { page, close } = await visit(browser, { url: console.url });
  const policyOf = async (query: string): Promise<string> =>
    (await page.goto(`${console.url}/${query}`))?.headers()['content-security-policy'] ?? '';
  expect(await policyOf('')).toContain("connect-src 'self';");
  expect(await policyOf(`?issuer=${encodeURIComponent('https://id.example.com/realms/one')}`)).toContain(
    "connect-src 'self' https://id.example.com;",
  );
  for (const odd of [
    'http://id.example.com',
    "https:;script-src 'unsafe-inline'",
    "https://a;script-src'unsafe-inline'",
    'javascript:alert(1)',
    '*',
  ]) {
    expect(await policyOf(`?issuer=${encodeURIComponent(odd)}`), odd).not.toMatch(/unsafe|javascript|\*|http:/);
  }
  await close();
});
