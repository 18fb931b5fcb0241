import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { openRegistry, type RegistryOptions } from './registry.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

let server: Server | undefined;
afterEach(() => void server?.close());

async function serving(answer: Answer, options: Partial<RegistryOptions> = {}) {
  server = createServer((request, response) => {
    request.resume();
    answer(request, response);
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registry = openRegistry({ registry: host, repository: 'team/a', plainHttp: true, patienceMs: 1, ...options });
  return { host, registry };
}

const digest = `sha256:${'a'.repeat(64)}`;

describe('a registry that gives tokens', () => {
  const answering: Answer = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
    if (pathname === '/token') {
      const asked = [searchParams.get('service'), searchParams.get('scope'), request.headers.authorization];
      return void response.end(JSON.stringify({ token: Buffer.from(JSON.stringify(asked)).toString('base64url') }));
    }
    if (request.headers.authorization === undefined) {
      const realm = `http://${request.headers.host}/token`;
      const challenge = `Bearer realm="${realm}",service="here",scope="repository:team/a:pull,push"`;
      return void response.writeHead(401, { 'www-authenticate': challenge }).end();
    }
    const token = request.headers.authorization.slice('Bearer '.length);
    const expected = ['here', 'repository:team/a:pull,push', `Basic ${Buffer.from('me:pw').toString('base64')}`];
    const valid = Buffer.from(token, 'base64url').toString() === JSON.stringify(expected);
    response.writeHead(valid ? 200 : 403).end();
  };

  test('is asked with the token that its realm gives for the credentials', async () => {
    const { registry } = await serving(answering, { credentials: { username: 'me', password: 'pw' } });
    expect(await registry.hasBlob(digest)).toBe(true);
  });

  test('refuses what the token does not cover', async () => {
    const { registry } = await serving(answering, { credentials: { username: 'me', password: 'other' } });
    await expect(registry.hasBlob(digest)).rejects.toMatchObject({ code: 'forbidden' });
  });
});

test('a registry that is overloaded is asked again', async () => {
  let asked = 0;
  const { registry } = await serving((_request, response) => {
    asked += 1;
    response.writeHead(asked < 3 ? 503 : 200).end();
  });
  expect(await registry.hasBlob(digest)).toBe(true);
  expect(asked).toBe(3);
});

test('a failure says what the registry said', async () => {
  const errors = [{ code: 'MANIFEST_INVALID', message: 'no such layer' }];
  const { registry } = await serving((_request, response) => response.writeHead(400).end(JSON.stringify({ errors })));
  await expect(registry.putManifest('1', 'x', Buffer.from('{}'))).rejects.toThrow(
    /^PUT .*manifests\/1 .*answered with 400: MANIFEST_INVALID: no such layer$/,
  );
});

test('credentials are not sent to another host that takes an upload', async () => {
  let seen: string | undefined = 'nothing came';
  const other = createServer((request, response) => {
    request.resume();
    seen = request.headers.authorization;
    response.writeHead(201).end();
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/upload?state=1`;
  const { registry } = await serving(
    (request, response) => {
      if (request.headers.authorization === undefined)
        return void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      response.writeHead(202, { location }).end();
    },
    { credentials: { username: 'me', password: 'pw' } },
  );
  await registry.putBlob(digest, Buffer.from('x'));
  other.close();
  expect(seen).toBeUndefined();
});

test('credentials are not sent to the token service that another host names', async () => {
  const tokens: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    request.resume();
    if (request.url?.startsWith('/token')) {
      tokens.push(request.headers.authorization);
      return void response.end(JSON.stringify({ token: 'x' }));
    }
    const realm = `http://${request.headers.host}/token`;
    response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}"` }).end();
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/upload`;
  const { registry } = await serving((_request, response) => response.writeHead(202, { location }).end(), {
    credentials: { username: 'me', password: 'pw' },
  });
  await expect(registry.putBlob(digest, Buffer.from('x'))).rejects.toMatchObject({ code: 'unauthenticated' });
  other.close();
  expect(tokens).toEqual([]);
});
