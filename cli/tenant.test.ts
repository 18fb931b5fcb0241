import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type IdentityProvider, startIdentityProvider } from '#control/testing/identity-provider.ts';
import { type BrokerChild, serveBroker } from './broker-child.ts';
import { isthmus, type Ran } from './captured-io.ts';

let dir = '';
let broker: BrokerChild;
let idp: IdentityProvider;
/** Each login has a configuration of its own. */
const as =
  (user: string) =>
  (...args: string[]): Promise<Ran> =>
    isthmus(args, { env: { ISTHMUS_CONFIG: path.join(dir, `${user}.json`) } });
const operator = as('operator');
const admin = as('admin');
const login = (user: string, key: string): Promise<Ran> =>
  isthmus(['login', broker.url, '--ca-hash', broker.caHash, '--key', '-'], {
    env: { ISTHMUS_CONFIG: path.join(dir, `${user}.json`) },
    stdin: key,
  });

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-tenant-'));
  idp = await startIdentityProvider(['portal']);
  broker = await serveBroker(path.join(dir, 'data'), '127.0.0.1:0', ['--allow-private-issuers']);
  expect((await login('operator', broker.operatorKey ?? '')).out).toContain('as operator of the broker');
}, 60_000);
afterAll(async () => {
  await broker.end('SIGTERM');
  await idp.close();
  await rm(dir, { recursive: true, force: true });
});

test('an operator makes a tenant and hands its admin key over', async () => {
  const { out, err } = await operator(
    'tenant',
    'create',
    'acme',
    '--display-name',
    'Acme Inc.',
    '--limit',
    'clusters=7',
  );
  expect(out).toMatch(/^isk_acme_\S+\n$/);
  expect(err).toContain('not shown again');
  expect((await login('admin', out.trim())).out).toContain('as tenant acme, role admin');
  expect((await operator('tenant', 'list')).out).toMatch(/acme +Acme Inc\. +active +<= 7/);
});

test('an admin sees limits and use, and renames the tenant', async () => {
  expect((await admin('tenant', 'show')).out).toMatch(/acme \(Acme Inc\.\)[\s\S]*Clusters: +0 of 7/);
  expect((await admin('tenant', 'rename', 'Acme')).out).toBe('tenant acme is now called Acme\n');
});

test('an operator sets limits and takes them back', async () => {
  expect((await operator('tenant', 'limit', 'acme', 'clusters=2', 'peerings=3')).out).toContain(
    'clusters 2, peerings 3',
  );
  expect((await operator('tenant', 'limit', 'acme', 'clusters=default')).out).not.toContain('clusters 2');
  const wrong = await operator('tenant', 'limit', 'acme', 'cluster=2');
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('requestsPerMinute')]);
});

describe('identity providers and members', () => {
  test('are registered, listed and removed', async () => {
    const added = await admin(
      'tenant',
      'issuer',
      'add',
      idp.url,
      '--audience',
      'https://broker.test',
      '--role-claim',
      'groups',
      '--map',
      'ops=operator',
    );
    expect([added.code, added.out]).toEqual([0, expect.stringContaining('is accepted')]);
    expect((await admin('tenant', 'issuer', 'list')).out).toContain('groups: ops=operator');
    const id = (await admin('tenant', 'issuer', 'list', '-o', 'name')).out.trim();
    expect((await admin('tenant', 'issuer', 'remove', id)).out).toContain('is removed');
    expect((await admin('tenant', 'issuer', 'list')).err).toBe('no identity providers\n');
  });

  test('are let in, changed and let in no more', async () => {
    const added = await admin('member', 'add', '--email', 'ada@example.org', '--name', 'Ada', '--role', 'viewer');
    const id = /mb_\w+/.exec(added.out)?.[0] ?? '';
    expect((await admin('member', 'set-role', id, '--role', 'admin')).out).toContain('role admin');
    expect((await admin('member', 'list')).out).toMatch(/ada@example\.org +Ada +admin/);
    expect((await admin('member', 'remove', id)).out).toContain('is removed');
    expect((await admin('member', 'remove', id)).code).toBe(4);
    const wrong = await admin('member', 'add', '--subject', 'x', '--role', 'viewer');
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('issuer and subject together')]);
  });
});

test('the export goes to standard output or into a private file', async () => {
  const file = path.join(dir, 'export.jsonl');
  const { err } = await admin('tenant', 'export', '--file', file);
  expect(err).toMatch(/^\d+ lines in /);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ kind: 'tenant', value: { name: 'acme' } });
  expect((await admin('tenant', 'export')).out.split('\n').length).toBeGreaterThanOrEqual(lines.length);
  expect((await admin('tenant', 'export', '--file', path.join(dir, 'none', 'x'))).code).toBe(2);
});

test('a tenant does not see what operators see, nor the other way round', async () => {
  expect((await admin('tenant', 'list')).code).toBe(3);
  expect((await admin('tenant', 'suspend', 'default')).code).toBe(4);
  expect((await operator('get', 'clusters')).code).toBe(3);
});

test('a suspended tenant hears why, until it is resumed', async () => {
  await operator('tenant', 'suspend', 'acme', '--reason', 'unpaid since May');
  const { code, err } = await admin('get', 'clusters');
  expect([code, err]).toEqual([3, expect.stringContaining('unpaid since May')]);
  expect((await operator('tenant', 'resume', 'acme')).out).toContain('is active');
  expect((await admin('get', 'clusters')).code).toBe(0);
});

test('a tenant is deleted by its admin, with a confirmation, and by the operator', async () => {
  const careful = await admin('tenant', 'delete', 'acme');
  expect([careful.code, careful.err]).toEqual([2, expect.stringContaining('--yes')]);
  expect((await admin('tenant', 'delete', 'acmee', '--yes')).code).toBe(2);
  expect((await admin('tenant', 'delete', 'acme', '--yes')).out).toBe('tenant acme is deleted\n');
  expect((await admin('tenant', 'show')).code).toBe(3);
  expect((await operator('tenant', 'create', 'acme')).code).toBe(5);
  await operator('tenant', 'create', 'brief');
  expect((await operator('tenant', 'delete', 'brief', '--yes')).out).toBe('tenant brief is deleted\n');
});
