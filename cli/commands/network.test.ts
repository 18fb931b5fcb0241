import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isthmus } from '#cli/captured-io.ts';

const dirs: string[] = [];
/** All that the command asks before it touches a cluster: whose it is. */
const cluster = createServer((request, response) => {
  const known = request.url?.endsWith('/configmaps/liqo-clusterid-configmap');
  response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' });
  response.end(JSON.stringify(known ? { data: { CLUSTER_ID: 'milan' } } : { kind: 'Status', code: 404 }));
});
let kubeconfig = '';

beforeAll(async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'isthmus-network-'));
  dirs.push(dir);
  await new Promise<void>((resolve) => cluster.listen(0, '127.0.0.1', resolve));
  kubeconfig = path.join(dir, 'kubeconfig');
  const server = `http://127.0.0.1:${(cluster.address() as AddressInfo).port}`;
  const config = {
    clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await writeFile(kubeconfig, JSON.stringify(config));
});
afterAll(async () => {
  cluster.close();
  await Promise.all(dirs.map((dir) => rm(dir, { recursive: true })));
});

const network = (line: string) => isthmus(['network', 'test', ...line.split(' ')]);

test.each([
  { line: 'rome rome --kubeconfig a --peer-kubeconfig b', says: 'both rome: accepted are two clusters' },
  { line: 'rome milan --kubeconfig a', says: '--peer-kubeconfig' },
  { line: 'rome milan --kubeconfig a --peer-kubeconfig b --external-ip 10.0.0.1', says: 'Accepted is IP:PORT' },
  { line: 'rome milan --kubeconfig a --peer-kubeconfig b --external-ip 10.0.0.1:70000', says: 'Accepted is IP:PORT' },
  { line: 'rome milan --kubeconfig /nonexistent --peer-kubeconfig b', says: 'kubeconfig /nonexistent cannot be read' },
])('`network test $line` is refused: $says', async ({ line, says }) => {
  const { code, err } = await network(line);
  expect(code).toBe(2);
  expect(err).toContain(says);
});

test('a kubeconfig of the wrong cluster is named before anything is put anywhere', async () => {
  const { code, err } = await network(`rome milan --kubeconfig ${kubeconfig} --peer-kubeconfig ${kubeconfig}`);
  expect(code).toBe(2);
  expect(err).toContain('--kubeconfig is the kubeconfig of cluster milan, not of rome');
});
