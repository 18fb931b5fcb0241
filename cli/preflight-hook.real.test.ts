/** The checks of the Helm chart's hook as its pod runs them: the image's own program within the memory that the chart gives it, before a cluster of 5,000 nodes. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type http from 'node:http';
import https from 'node:https';
import type net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { selfSignedCertificate } from '#agent/pki/serving-request.ts';
import { bundleAgent } from '#scripts/image/bundle.ts';
import { run } from '#test/harness/program.ts';
import { makeMemoryGroup, removeGroups } from '#test/testbed/cgroups.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const [nodeCount, podsOfANode, serviceCount] = [5_000, 3, 5_000];

/** Of 250 bytes, as a kubelet names what it has pulled. */
const image = (at: number): object => {
  const name = `registry.example.com/some-team/${'service'.repeat(6)}-${at}`;
  return { names: [`${name}@sha256:${'0a'.repeat(32)}`, `${name}:v1.2.${at}`], sizeBytes: 123_456_789 + at };
};
const images = Array.from({ length: 50 }, (_, at) => image(at));
const padding = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`example.com/fact-${at}`, 'x'.repeat(40)]));

/** 20 kB, as on a node that has run for a while: 50 images, labels of a cloud, annotations of a CNI. */
const node = (at: number): object => {
  const name = `node-${at}`;
  return {
    metadata: {
      ...{ name, uid: `uid-${at}`, resourceVersion: `${at + 1}`, creationTimestamp: '2026-01-01T00:00:00Z' },
      labels: { ...padding, 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' },
      annotations: padding,
      managedFields: [{ manager: 'kubelet', fieldsV1: { a: padding, b: padding, c: padding, d: padding } }],
    },
    spec: { podCIDR: `10.${at >> 8}.${at & 255}.0/24`, podCIDRs: [`10.${at >> 8}.${at & 255}.0/24`] },
    status: {
      addresses: [{ type: 'InternalIP', address: `172.16.${at >> 8}.${at & 255}` }],
      conditions: [{ type: 'Ready', status: 'True' }],
      nodeInfo: { operatingSystem: 'linux', architecture: 'amd64', kernelVersion: '6.1.0', osImage: 'Debian' },
      images,
    },
  };
};

const container = {
  name: 'main',
  image: 'i',
  command: ['run'],
  env: Object.entries(padding).map(([name, value]) => ({ name, value })),
};
const pod = (at: number): object => ({
  metadata: { name: `kube-proxy-${at}`, namespace: 'kube-system', annotations: padding },
  spec: { nodeName: `node-${at % nodeCount}`, containers: [container, container] },
  status: { phase: 'Running' },
});
const service = (at: number): object => ({
  metadata: { name: `service-${at}`, namespace: 'default', annotations: padding },
  spec: { type: 'ClusterIP', clusterIP: '10.96.0.1' },
});

const [kubeSystemPods, plainServices] = ['/api/v1/namespaces/kube-system/pods', '/api/v1/services'];
const many: Readonly<Record<string, { readonly count: number; readonly make: (at: number) => object }>> = {
  '/api/v1/nodes': { count: nodeCount, make: node },
  [kubeSystemPods]: { count: nodeCount * podsOfANode, make: pod },
  [plainServices]: { count: serviceCount, make: service },
};
const listed = new Map<string, number>();
const limits = new Map<string, Set<number>>();

/** What an API server of a large cluster answers to the hook: in pages, as it asks for them. */
function answer(request: http.IncomingMessage): { readonly code: number; readonly body: object } {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'https://x');
  const list = many[pathname];
  if (list !== undefined) {
    const from = Number(searchParams.get('continue') ?? 0);
    const to = Math.min(list.count, from + Number(searchParams.get('limit') ?? list.count));
    limits.set(pathname, (limits.get(pathname) ?? new Set()).add(Number(searchParams.get('limit'))));
    listed.set(pathname, (listed.get(pathname) ?? 0) + to - from);
    const items = Array.from({ length: to - from }, (_, at) => list.make(from + at));
    const metadata = { resourceVersion: '9', ...(to < list.count && { continue: `${to}` }) };
    return { code: 200, body: { kind: 'List', metadata, items } };
  }
  if (pathname === '/version') return { code: 200, body: { gitVersion: 'v1.34.4' } };
  if (pathname === '/apis') return { code: 200, body: { groups: [] } };
  if (request.method === 'POST')
    return { code: 201, body: { status: { allowed: true, userInfo: { username: 'hook' } } } };
  // Dry runs of what would be applied are fine.
  if (request.method === 'PATCH') return { code: 200, body: { metadata: { name: 'x' } } };
  const name = pathname.split('/').at(-1);
  // What ends with a plural of a kind is a list, and everything else an object that is not there.
  if (name?.endsWith('s') && !pathname.includes('kubernetes')) return { code: 200, body: { metadata: {}, items: [] } };
  return { code: 404, body: { kind: 'Status', code: 404, reason: 'NotFound', details: { name } } };
}

/** As the chart has it, in MiB. */
const limit = Number(
  /memory: (\d+)Mi\n/.exec(
    readFileSync(path.join(repositoryRoot, 'charts', 'isthmus', 'templates', '_helpers.tpl'), 'utf8').split(
      'limits:',
    )[1] ?? '',
  )?.[1],
);
const group = `isthmus-hook-${process.pid}`;

let dir: string;
let server: https.Server;
let program: string;

beforeAll(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-hook-'));
  const { files } = await bundleAgent(repositoryRoot, '0.0.0-test');
  program = path.join(dir, 'check.mjs');
  writeFileSync(program, files.find(({ name }) => name === 'check.mjs')?.content ?? '');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const subject = { nodeName: 'rome', addresses: ['127.0.0.1'] };
  const validity = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 3_600_000 };
  const cert = selfSignedCertificate(subject, key, validity, randomBytes(20));
  writeFileSync(path.join(dir, 'ca.crt'), cert);
  writeFileSync(path.join(dir, 'token'), 'token');
  server = https.createServer({ key, cert }, (request, response) => {
    request.resume();
    const { code, body } = answer(request);
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  rmSync(dir, { recursive: true, force: true });
  await removeGroups(group);
});

test('the checks before an installation read a cluster of 5,000 nodes within the memory of their pod', async () => {
  const processes = makeMemoryGroup(group, limit);
  const { port } = server.address() as net.AddressInfo;
  // The maxRSS of a process is also that of the program from which it was executed; VmHWM is of its own memory.
  const atEnd = `
    import { readFileSync } from 'node:fs';
    process.on('exit', () => console.error('peak ' + /VmHWM:\\s*(\\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]));`;
  const started = [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(atEnd)}`, program];
  const flags = ['--service-cidr', '10.96.0.0/12', '--api-server-url', 'https://api.example.com:6443'];
  const ended = await run('sh', ['-c', `echo $$ > ${processes} && exec "$@"`, 'sh', ...started, ...flags], {
    env: {
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: `${port}`,
      TOKEN_FILE: path.join(dir, 'token'),
      NODE_EXTRA_CA_CERTS: path.join(dir, 'ca.crt'),
      NODE_OPTIONS: '',
    },
    timeoutMs: 280_000,
  });
  const said = `${ended.code}: ${ended.stdout}${ended.stderr}`;
  expect(said).toContain(`${nodeCount} Linux nodes`);
  expect(said).toMatch(/^0: /);
  for (const [pathname, { count }] of Object.entries(many)) expect(listed.get(pathname)).toBeGreaterThanOrEqual(count);
  // Each page is a round trip: small ones only where objects are large.
  expect(limits.get('/api/v1/nodes')).toEqual(new Set([50]));
  for (const pathname of [kubeSystemPods, plainServices]) expect(limits.get(pathname)).toEqual(new Set([250]));
  // Room for what a kernel counts beside it.
  expect(Number(/peak (\d+)/.exec(said)?.[1]) / 1024).toBeLessThan(limit * 0.9);
}, 300_000);
