/** Logging in by a real OpenID provider (oidc-provider) with PKCE, in Debian's Chromium, at a real broker. */
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { logIn, openBrowser, visit } from './browser.ts';
import { type ConsoleBroker, startConsoleBroker } from './console-broker.ts';
import { type HostedConsole, serveHosted } from './hosted-console.ts';

let console: ConsoleBroker;
let browser: Browser;
let server: Server;
let issuer = '';
let hosted: HostedConsole;
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
  hosted = await serveHosted({ url: console.url, ca: console.broker().caPem }, [issuer]);
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
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        redirect_uris: [`${console.url}/`, `${hosted.url}/`],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    clientBasedCORS: (_context: unknown, origin: string) => [console.url, hosted.url].includes(origin),
    issueRefreshToken: () => true,
    // Renewed a minute before they end: seconds after a login.
    ttl: { IdToken: 65 },
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
  hosted?.close();
  server?.closeAllConnections();
  server?.close();
  await console?.close();
});

/** `known already`: the provider has a session of this reader, and asks nothing. */
async function atProvider(page: Page, user: string, how: 'first time' | 'known already' = 'first time'): Promise<void> {
  await page.getByLabel('Issuer').fill(issuer);
  await page.getByLabel('Client ID').fill(client);
  await page.getByRole('button', { name: 'Go to the provider' }).click();
  if (how === 'known already') return;
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

test('at the hosted console, under its one policy, a member logs in, is renewed in silence, and is logged out by a reload or by itself', async () => {
  const seen = await visit(browser, { url: hosted.url });
  const { page } = seen;
  const policy = (await page.goto(`${hosted.url}/`))?.headers()['content-security-policy'] ?? '';
  expect(policy).toContain(`connect-src 'self' ${issuer};`);
  expect(policy).not.toMatch(/unsafe|\*/);
  const [bearers, renewals]: [string[], string[]] = [[], []];
  page.on('request', (each) => {
    if (each.postData()?.includes('grant_type=refresh_token')) renewals.push(new URL(each.url()).origin);
    const { authorization } = each.headers();
    if (new URL(each.url()).pathname.startsWith('/v1/') && authorization !== undefined) bearers.push(authorization);
  });
  await atProvider(page, 'anna');
  await page.getByText('default (operator)').waitFor();
  await page.getByRole('link', { name: 'Clusters', exact: true }).click();
  await page.getByRole('heading', { name: 'Clusters', exact: true }).waitFor();
  expect(await page.evaluate('Object.values(sessionStorage).join()')).toBe('');
  await eventually('a renewal of the login', () => renewals.length > 0);
  expect(renewals[0]).toBe(issuer);
  await eventually('requests with the new token', () => new Set(bearers).size >= 2);
  await page.getByText('default (operator)').waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('API key').waitFor();
  await page.getByLabel('Issuer').waitFor();
  await atProvider(page, 'anna', 'known already');
  await page.getByText('default (operator)').waitFor();
  await page.reload();
  await page.getByLabel('API key').waitFor();
  // Requests to other origins are those of the provider's own pages; one of ours would be a breach of the policy.
  expect(seen.complaints.filter((each) => !each.startsWith('request to '))).toEqual([]);
  await seen.close();
});

test('the hosted console asks no provider that its operator has not named', async () => {
  const other = await serveHosted({ url: console.url, ca: console.broker().caPem }, []);
  try {
    const seen = await visit(browser, { url: other.url });
    await seen.page.getByLabel('Issuer').fill(issuer);
    await seen.page.getByLabel('Client ID').fill(client);
    await seen.page.getByRole('button', { name: 'Go to the provider' }).click();
    await seen.page.getByRole('alert').waitFor();
    expect(seen.complaints.join()).toContain('Content Security Policy');
    await seen.close();
  } finally {
    other.close();
  }
});
