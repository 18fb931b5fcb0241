/** What a renewal leaves in the file when something happens meanwhile: at a provider that a test makes act in the middle of it. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { type Login, saveLogin } from './login-config.ts';
import { renewed } from './renew.ts';

let dir = '';
let server: Server;
let issuer = '';
/** Runs while a request for tokens is under way. */
let meanwhile: () => unknown = () => undefined;
let status = 200;
let asked = 0;

const clock = new ManualClock();
const tokenUntil = (ms: number): string =>
  `e30.${Buffer.from(JSON.stringify({ sub: 'anna', exp: ms / 1_000 })).toString('base64url')}.e30`;
const ioWith = (signal = new AbortController().signal) => ({
  clock,
  signal,
  env: { ISTHMUS_CONFIG: path.join(dir, 'config.json') },
  home: dir,
});
const saved = async (): Promise<Login> => JSON.parse(await readFile(path.join(dir, 'config.json'), 'utf8')) as Login;
const loginUntil = (ms: number): Login => ({
  url: 'https://broker.test',
  key: tokenUntil(ms),
  tenant: 'acme',
  provider: { issuer, clientId: 'cli', refreshToken: 'first', expiresAt: ms },
});

beforeEach(async () => {
  [meanwhile, status, asked] = [() => undefined, 200, 0];
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-renew-'));
  server = createServer(async (request, response) => {
    const isToken = request.url === '/token';
    if (isToken) {
      asked += 1;
      await meanwhile();
    }
    const body = isToken
      ? { id_token: tokenUntil(clock.now() + 3_600_000), refresh_token: 'second' }
      : { issuer, token_endpoint: `${issuer}/token` };
    response.writeHead(isToken ? status : 200).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(dir, { recursive: true, force: true });
});

test('the refresh token that a command has spent is replaced in the file, although the command is told to stop meanwhile', async () => {
  const login = loginUntil(clock.now());
  await saveLogin(ioWith(), login);
  const stop = new AbortController();
  meanwhile = () => stop.abort();
  await renewed(ioWith(stop.signal), login);
  expect((await saved()).provider?.refreshToken).toBe('second');
});

test.each<[string, (login: Login) => Login]>([
  ['at another broker', (login) => ({ ...login, url: 'https://other.test' })],
  ['to another tenant', (login) => ({ ...login, tenant: 'globex' })],
])('a login %s that is saved meanwhile stays', async (_, change) => {
  const login = loginUntil(clock.now());
  const other = change(login);
  await saveLogin(ioWith(), login);
  meanwhile = () => saveLogin(ioWith(), other);
  expect((await renewed(ioWith(), login)).provider?.refreshToken).toBe('second');
  expect(await saved()).toEqual(other);
});

test('a login that was replaced in the file goes on as itself', async () => {
  const login = loginUntil(clock.now());
  const other: Login = { url: 'https://other.test', key: 'isk_other' };
  await saveLogin(ioWith(), other);
  expect(await renewed(ioWith(), login)).toMatchObject({ url: 'https://broker.test', tenant: 'acme' });
  expect(await saved()).toEqual(other);
});

test('a token that is good for some seconds is used while the provider does not answer, and not after its end', async () => {
  status = 503;
  const login = loginUntil(clock.now() + 30_000);
  await saveLogin(ioWith(), login);
  expect(await renewed(ioWith(), login)).toEqual(login);
  expect(asked).toBe(1);
  clock.advance(30_000);
  await expect(renewed(ioWith(), login)).rejects.toMatchObject({ code: 'issuer_unreachable' });
});

test('a token that is good for some seconds is used where the configuration cannot be written, and not after its end', async () => {
  const login = loginUntil(clock.now() + 30_000);
  await writeFile(path.join(dir, 'file'), '');
  const io = { ...ioWith(), env: { ISTHMUS_CONFIG: path.join(dir, 'file', 'config.json') } };
  expect(await renewed(io, login)).toEqual(login);
  clock.advance(30_000);
  await expect(renewed(io, login)).rejects.toMatchObject({ code: 'host_unsupported' });
  expect(asked).toBe(0);
});
