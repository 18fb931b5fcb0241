import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type CredentialHelper, credentialsFor } from './registry-credentials.ts';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-credentials-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const host = 'registry.example:5000';
const auth = Buffer.from('me:pw:with:colons').toString('base64');
const config = (content: unknown): string => {
  const file = path.join(scratch, 'config.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
};
const noHelper: CredentialHelper = () => Promise.reject(new Error('no helper was to be asked'));

describe("docker's configuration gives", () => {
  test.each([
    { of: 'a login', content: { auths: { [host]: { auth } } }, gives: { username: 'me', password: 'pw:with:colons' } },
    { of: 'a login by URL', content: { auths: { [`https://${host}`]: { auth } } }, gives: { username: 'me' } },
    {
      of: 'an identity token',
      content: { auths: { [host]: { auth: '', identitytoken: 't' } } },
      gives: { identityToken: 't' },
    },
    { of: 'another registry', content: { auths: { 'other.example': { auth } } }, gives: undefined },
    { of: 'nothing', content: {}, gives: undefined },
  ])('for $of: $gives', async ({ content, gives }) => {
    const found = await credentialsFor(host, config(content), noHelper);
    if (gives === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(gives);
  });

  test('what the helper of that registry answers, before the one of all', async () => {
    const asked: string[][] = [];
    const helper: CredentialHelper = (name, registry) => {
      asked.push([name, registry]);
      return Promise.resolve(JSON.stringify({ Username: '<token>', Secret: 's' }));
    };
    const file = config({ credsStore: 'all', credHelpers: { [host]: 'mine' } });
    expect(await credentialsFor(host, file, helper)).toEqual({ identityToken: 's' });
    expect(asked).toEqual([['mine', host]]);
  });

  test('its own entry when the helper has none', async () => {
    const helper: CredentialHelper = () => Promise.reject(new Error('credentials not found in native keychain'));
    const file = config({ credsStore: 'all', auths: { [host]: { auth } } });
    expect(await credentialsFor(host, file, helper)).toMatchObject({ username: 'me' });
  });

  test('nothing when there is no such file', async () => {
    expect(await credentialsFor(host, path.join(scratch, 'absent.json'), noHelper)).toBeUndefined();
  });
});

describe('no secret is quoted', () => {
  test('of a file that is no JSON', async () => {
    const failure = credentialsFor(host, config('{"auth": "hunter2"'), noHelper);
    await expect(failure).rejects.toThrow(/config\.json is not valid JSON$/);
  });

  test('of a helper that fails', async () => {
    const helper: CredentialHelper = () => Promise.reject(new Error('failed after printing hunter2'));
    const failure = await credentialsFor(host, config({ credsStore: 'x' }), helper).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'command_failed' });
    expect(String((failure as Error).stack)).not.toContain('hunter2');
  });
});
