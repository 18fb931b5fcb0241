import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { peerings } from '#shared/schema/isthmus/peering.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { isthmus } from './captured-io.ts';

let dir = '';
const asked: string[] = [];
const tenantNamespace = {
  metadata: {
    name: 'liqo-tenant-milan',
    labels: { 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': 'milan' },
  },
};
const server = createServer((request, response) => {
  request.resume();
  const { pathname } = new URL(request.url ?? '', 'http://x');
  asked.push(`${request.method} ${pathname}`);
  const body = pathname.endsWith('/namespaces')
    ? { kind: 'NamespaceList', items: [tenantNamespace] }
    : /trustedpeers|peeringlocks/.test(pathname)
      ? { metadata: { name: 'milan' }, spec: { keys: [] } }
      : { metadata: { name: 'shop' } };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
});
let target: readonly string[] = [];

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-output-'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const config = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } }],
    users: [{ name: 'u', user: { token: 't' } }],
  };
  const file = path.join(dir, 'kubeconfig');
  await writeFile(file, JSON.stringify(config));
  target = ['--kubeconfig', file];
});
afterAll(async () => {
  server.close();
  await rm(dir, { recursive: true, force: true });
});

const run = (...args: readonly string[]) => isthmus([...args], { env: { ISTHMUS_CONFIG: path.join(dir, 'none') } });
const onlyReads = () => asked.splice(0).filter((line) => !line.startsWith('GET '));

describe('-o prints the object that would be made, and makes none:', () => {
  test('offload namespace', async () => {
    const { out, code } = await run('offload', 'namespace', 'shop', '--strategy', 'Remote', '-o', 'yaml', ...target);
    expect(code).toBe(0);
    const object = yaml.parse(out);
    expect(object).toMatchObject({
      kind: 'NamespaceOffloading',
      metadata: { namespace: 'shop', name: 'offloading' },
      spec: { podOffloadingStrategy: 'Remote', namespaceMappingStrategy: 'DefaultName' },
    });
    expect(namespaceOffloadings.spec.safeParse(object.spec).error).toBeUndefined();
    expect(onlyReads()).toEqual([]);
  });

  test('slice create', async () => {
    const args = ['--provider', 'milan', '--cpu', '2', '-o', 'json'];
    const { out, code, err } = await run('slice', 'create', 'more', ...args, ...target);
    expect(code, err).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      kind: 'ResourceSlice',
      metadata: { namespace: 'liqo-tenant-milan', name: 'more' },
      spec: { providerClusterID: 'milan', resources: { cpu: '2' } },
    });
    expect(onlyReads()).toEqual([]);
  });

  test('trust', async () => {
    const { out, code, err } = await run('trust', 'milan', '--as', 'both', '-o', 'yaml', ...target);
    expect(code, err).toBe(0);
    const object = yaml.parse(out);
    expect(object).toMatchObject({ kind: 'TrustedPeer', metadata: { name: 'milan' } });
    expect(object.spec).toEqual({ consent: ['consumer', 'provider'] });
    expect(onlyReads()).toEqual([]);
  });

  test('lock trust', async () => {
    const key = generateKeyPairSync('ed25519').publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    const { out, code, err } = await run('lock', 'trust', key, '--tenant', 'other', '-o', 'json', ...target);
    expect(code, err).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      kind: 'PeeringLock',
      metadata: { name: 'other' },
      spec: { keys: [{ key }] },
    });
    expect(onlyReads()).toEqual([]);
  });

  test('peer, which asks no broker', async () => {
    const { out, code } = await run('peer', 'rome', 'milan', '--cpu', '2', '--mtu', '1400', '-o', 'yaml');
    expect(code).toBe(0);
    const object = yaml.parse(out);
    expect(object.spec).toEqual({
      provider: 'milan',
      class: 'default',
      resources: { cpu: '2' },
      network: { mtu: 1400 },
    });
    expect(peerings.spec.safeParse(object.spec).error).toBeUndefined();
  });

  test('peer refuses what a Peering cannot say', async () => {
    const { code, err } = await run('peer', 'rome', 'milan', '--labels', 'a=b', '-o', 'yaml');
    expect(code).not.toBe(0);
    expect(err).toContain('--labels cannot be said in a Peering');
  });
});
