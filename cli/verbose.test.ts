import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isthmus } from './captured-io.ts';

let dir = '';
let url = '';
const token = 'a-token-that-is-secret';
const server = createServer((request, response) => {
  request.resume();
  const body = request.url?.startsWith('/version') ? { gitVersion: 'v1.34.0' } : { kind: 'NodeList', items: [] };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
});

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-verbose-'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: url } }],
    users: [{ name: 'u', user: { token } }],
  };
  await writeFile(path.join(dir, 'kubeconfig'), JSON.stringify(config));
  await writeFile(path.join(dir, 'config.json'), JSON.stringify({ url: 'https://127.0.0.1:1', key: token }));
});
afterAll(async () => {
  server.close();
  await rm(dir, { recursive: true, force: true });
});

const run = (...args: readonly string[]) =>
  isthmus([...args], { env: { ISTHMUS_CONFIG: path.join(dir, 'config.json') } });

describe('--verbose', () => {
  test.each([
    { where: 'after the command', args: (rest: readonly string[]) => [...rest, '--verbose'] },
    { where: 'before it', args: (rest: readonly string[]) => ['--verbose', ...rest] },
  ])('$where shows requests to a cluster with method, address, status and time', async ({ args }) => {
    const { err } = await run(...args(['cordon', 'tenant', 'milan', '--kubeconfig', path.join(dir, 'kubeconfig')]));
    expect(err).toMatch(/^GET http:\/\/127\.0\.0\.1:\d+\/\S+ 200 \d+ ms$/m);
    expect(err).not.toContain(token);
    expect(err.split('\n').filter((line) => line.startsWith('GET ') && line.includes('?'))).toEqual([]);
  });

  test('shows a broker that does not answer', async () => {
    const { err } = await run('version', '--verbose');
    expect(err).toMatch(/^GET https:\/\/127\.0\.0\.1:1\/v1\/health failed: .* \d+ ms$/m);
    expect(err).not.toContain(token);
  });

  test('is silent unless asked for, also after a command that was asked', async () => {
    await run('version', '--verbose');
    expect((await run('version')).err).toBe('');
  });
});
