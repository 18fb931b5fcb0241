/** `isthmus login` without a key: at a real OpenID provider (oidc-provider), with a real broker; the person's browser is plain requests. */
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type IdentityProvider, startIdentityProvider } from '#control/testing/identity-provider.ts';
import { personAtProvider } from '#control/testing/person-at-provider.ts';
import { type BrokerChild, serveBroker } from './broker-child.ts';
import { isthmus, type Ran } from './captured-io.ts';

let dir = '';
let broker: BrokerChild;
let idp: IdentityProvider;

const configOf = (user: string): string => path.join(dir, `${user}.json`);
const as =
  (user: string) =>
  (...args: string[]): Promise<Ran> =>
    isthmus(args, { env: { ISTHMUS_CONFIG: configOf(user) } });

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-device-'));
  [idp, broker] = await Promise.all([
    startIdentityProvider(['portal'], 600, { deviceClients: ['isthmus-cli'] }),
    serveBroker(path.join(dir, 'data'), '127.0.0.1:0', ['--allow-private-issuers']),
  ]);
  const admin = as('admin');
  const done = [
    await admin('login', broker.url, '--ca-hash', broker.caHash, '--key', broker.adminKey ?? ''),
    await admin('tenant', 'issuer', 'add', idp.url, '--audience', 'isthmus-cli'),
    await admin('member', 'add', '--issuer', idp.url, '--subject', 'anna', '--role', 'operator'),
  ];
  expect(done.map(({ code, err }) => (code === 0 ? 'ok' : err))).toEqual(['ok', 'ok', 'ok']);
}, 60_000);
afterAll(async () => {
  await broker?.end('SIGTERM');
  await idp?.close();
  await rm(dir, { recursive: true, force: true });
});

interface Attempt {
  readonly user: string;
  /** What the person does at the page that the command names. */
  readonly person?: (page: string) => Promise<unknown>;
  readonly args?: readonly string[];
  /** How far this machine's clock is ahead. */
  readonly aheadMs?: number;
}

/** Time passes by the command's sleeps alone: the first lasts until the person is done. */
async function attempt({
  user,
  person,
  args,
  aheadMs = 0,
}: Attempt): Promise<Ran & { readonly slept: readonly number[] }> {
  const slept: number[] = [];
  let now = Date.now() + aheadMs;
  let acted: Promise<unknown> | undefined;
  let said = '';
  const ran = await isthmus(
    [
      'login',
      broker.url,
      ...(args ?? [
        '--ca-hash',
        broker.caHash,
        '--issuer',
        idp.url,
        '--client-id',
        'isthmus-cli',
        '--tenant',
        'default',
      ]),
    ],
    {
      env: { ISTHMUS_CONFIG: configOf(user) },
      onErr: (text) => {
        said += text;
        const page = /^ {2}(http\S+)\n/m.exec(said)?.[1];
        if (page !== undefined) acted ??= person?.(page);
      },
      clock: {
        now: () => now,
        sleep: async (ms, signal) => {
          await acted;
          signal?.throwIfAborted();
          slept.push(ms);
          now += ms;
        },
      },
    },
  );
  await acted;
  return { ...ran, slept };
}

const consentAs =
  (login: string) =>
  (page: string): Promise<string> =>
    personAtProvider().consent(page, login);

describe('a login without a key', () => {
  test('shows a page and a code, waits for consent there, and has the role of the member', async () => {
    const ran = await attempt({ user: 'anna', person: consentAs('anna') });
    expect([ran.code, ran.out]).toEqual([0, `logged in to ${broker.url} as tenant default, role operator\n`]);
    expect(ran.err).toMatch(/shows the code [A-Z]{4}-[A-Z]{4}/);
    expect(ran.slept[0]).toBe(5_000);
    expect((await as('anna')('get', 'clusters')).code).toBe(0);
    expect((await as('anna')('key', 'list')).err).toContain('needs role admin');
    expect((await stat(configOf('anna'))).mode & 0o777).toBe(0o600);
  });

  test('needs its options once', async () => {
    expect((await attempt({ user: 'berta', person: consentAs('anna') })).code).toBe(0);
    const again = await attempt({ user: 'berta', person: consentAs('anna'), args: [] });
    expect([again.code, again.out]).toEqual([0, expect.stringContaining('role operator')]);
  });

  test('is made with a token that ends within seconds', async () => {
    const ran = await attempt({ user: 'emil', person: consentAs('anna'), aheadMs: 3_580_000 });
    expect([ran.code, ran.err]).toEqual([0, expect.stringContaining('saved in')]);
    expect((await as('emil')('get', 'clusters')).code).toBe(0);
  });

  test('ends at once when consent is denied, and leaves no login', async () => {
    const ran = await attempt({ user: 'denied', person: (page) => personAtProvider().refuse(page) });
    expect([ran.code, ran.err]).toEqual([3, expect.stringContaining('consent was denied at the provider')]);
    expect(ran.slept).toHaveLength(1);
    await expect(stat(configOf('denied'))).rejects.toThrow('ENOENT');
  });

  test('ends when the code has expired, and not later', async () => {
    const ran = await attempt({ user: 'late' });
    expect([ran.code, ran.err]).toEqual([8, expect.stringContaining('the code expired before consent')]);
    expect(ran.slept.reduce((sum, ms) => sum + ms, 0)).toBe(600_000);
  });

  test('tells a person that is no member what an admin types', async () => {
    const ran = await attempt({ user: 'mallory', person: consentAs('mallory') });
    expect([ran.code, ran.err]).toEqual([
      3,
      expect.stringContaining(`member add --issuer ${idp.url} --subject mallory`),
    ]);
    await expect(stat(configOf('mallory'))).rejects.toThrow('ENOENT');
  });

  test.each<[string, readonly string[], string]>([
    ['nothing at all', [], '--issuer, --client-id, --tenant not given'],
    ['a key beside a provider', ['--key', 'x', '--tenant', 'default'], '--key and --tenant exclude each other'],
    ['plain HTTP', ['--issuer', 'http://192.0.2.1', '--client-id', 'c', '--tenant', 't'], 'accepted is https://HOST'],
  ])('refuses %s', async (_what, args, why) => {
    const ran = await attempt({ user: 'refused', args: [...args, '--ca-hash', broker.caHash] });
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining(why)]);
  });

  test.each<[string, string, string]>([
    ['a client that may not use the device flow', 'portal', 'refuses client "portal"'],
    ['a client that is not there', 'ghost', 'refuses client "ghost"'],
  ])('refuses %s, in words of the provider', async (_what, client, why) => {
    const args = ['--ca-hash', broker.caHash, '--issuer', idp.url, '--client-id', client, '--tenant', 'default'];
    const ran = await attempt({ user: 'refused', args });
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining(why)]);
  });

  test('says that a provider has no device flow', async () => {
    const plain = await startIdentityProvider(['portal']);
    const args = ['--ca-hash', broker.caHash, '--issuer', plain.url, '--client-id', 'portal', '--tenant', 'default'];
    const ran = await attempt({ user: 'refused', args });
    await plain.close();
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining('names no device_authorization_endpoint')]);
  });
});

describe('a token that ends', () => {
  /** As it is an hour later: only the file says when the token ends, so no test waits for it. */
  async function ending(user: string, change: (provider: Record<string, unknown>) => void): Promise<void> {
    const saved = JSON.parse(await readFile(configOf(user), 'utf8')) as { provider: Record<string, unknown> };
    saved.provider.expiresAt = Date.now() - 1_000;
    change(saved.provider);
    await writeFile(configOf(user), JSON.stringify(saved));
  }
  const keyOf = async (user: string): Promise<unknown> =>
    (JSON.parse(await readFile(configOf(user), 'utf8')) as { key: unknown }).key;

  test('is renewed by the next commands, once for all that run at the same time', async () => {
    await attempt({ user: 'carla', person: consentAs('anna') });
    const before = await keyOf('carla');
    await ending('carla', () => undefined);
    const ran = await Promise.all([1, 2, 3].map(() => as('carla')('get', 'clusters')));
    expect(ran.map(({ code, err }) => [code, err])).toEqual([1, 2, 3].map(() => [0, expect.any(String)]));
    expect(await keyOf('carla')).not.toBe(before);
    await ending('carla', () => undefined);
    expect((await as('carla')('get', 'clusters')).code).toBe(0);
  });

  test('and cannot be renewed ends the login, with the line to type', async () => {
    await attempt({ user: 'dora', person: consentAs('anna') });
    await ending('dora', (provider) => {
      provider.refreshToken = 'revoked';
    });
    const revoked = await as('dora')('get', 'clusters');
    expect([revoked.code, revoked.err]).toEqual([3, expect.stringContaining(`isthmus login ${broker.url}`)]);
    await ending('dora', (provider) => {
      delete provider.refreshToken;
    });
    expect((await as('dora')('get', 'clusters')).err).toContain('the provider gave no refresh token');
  });
});
