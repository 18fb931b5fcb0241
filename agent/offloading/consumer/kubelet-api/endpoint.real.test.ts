import { generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import * as https from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import {
  type CertificateSigningRequest,
  certificateSigningRequests,
  nodes,
  pods,
  serviceAccounts,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  runPod,
  startOffloadingClusters,
} from '#test/harness/offloading-clusters.ts';
import { CertificateAuthority, type KeyPair } from '#test/testbed/pki.ts';
import { createVirtualNodeController } from '../virtual-node/controller.ts';
import { selfSigned } from './serving-certificate.ts';

let world: OffloadingClusters;
let port: number;
let worker: Worker;
const stop = new AbortController();
let ended: Promise<void>;

/** The kubelet of the provider's node, as far as streams go: says what it was asked, then echoes. */
interface Worker {
  readonly server: https.Server;
  readonly sockets: Set<Duplex>;
  readonly asked: string[];
}

async function startWorker(): Promise<Worker> {
  const pair = selfSigned({ nodeName: 'worker', addresses: ['127.0.0.1'] }, { clock: systemClock, ids: systemIds });
  const server = https.createServer({ ...pair, allowHalfOpen: true } as https.ServerOptions);
  const known: Worker = { server, sockets: new Set(), asked: [] };
  server.on('request', (request, response) => {
    known.asked.push(`${request.method} ${request.url}`);
    response.writeHead(200, { 'content-type': 'text/plain' });
    if (!request.url?.includes('follow=true')) return response.end('first line\n');
    response.write('first line\n');
    known.sockets.add(request.socket);
    request.socket.once('close', () => known.sockets.delete(request.socket));
  });
  server.on('upgrade', (request, socket: Duplex) => {
    known.asked.push(`${request.method} ${request.url}`);
    if (request.url?.includes('command=refuse')) {
      return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 14\r\nConnection: close\r\n\r\nnot in my yard');
    }
    known.sockets.add(socket);
    socket.once('close', () => known.sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n\r\n`,
    );
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return known;
}

beforeAll(async () => {
  world = await startOffloadingClusters(['demo', 'idle']);
  worker = await startWorker();
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: (worker.server.address() as AddressInfo).port } },
  };
  await world.provider.api.mergePatch(nodes, { name: 'worker' }, { status }, { subresource: 'status' });
  const deps = { clock: systemClock, log: silentLog, ids: systemIds };
  const controller = createVirtualNodeController({
    ...deps,
    cluster: world.consumer,
    clusterId: 'cons',
    podIp: '127.0.0.1',
    kubeletPortBase: 11_250,
    systemNamespace: 'liqo',
    connectPeer: createConnectCluster(deps),
  });
  ended = controller.run(stop.signal);
  await createVirtualNode(world, 'vn1');
  await mapNamespaces(world, ['demo']);
  const node = await eventually('the Node', () => world.consumer.api.get(nodes, { name: 'vn1' }));
  port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  await world.consumer.api.create(pods, boundPod('demo', 'web', 'vn1'));
  await world.consumer.api.create(pods, boundPod('idle', 'waiting', 'vn1'));
  await runPod(world, 'demo-cons', 'web');
  await eventually('running', async () => {
    const pod = await world.consumer.api.get(pods, { namespace: 'demo', name: 'web' });
    return pod?.status?.phase === 'Running';
  });
}, 900_000);

afterAll(async () => {
  stop.abort();
  await ended;
  worker?.server.closeAllConnections();
  worker?.server.close();
  await world?.stop();
});

const pki = async (name: string): Promise<KeyPair> => {
  const read = (file: string) => readFile(path.join(world.servers.consumer.dir, 'pki', file), 'utf8');
  return { cert: await read(`${name}.crt`), key: await read(`${name}.key`) };
};

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Calls the endpoint directly, as a client that reaches the agent's address could. */
function ask(url: string, pair?: KeyPair, method = 'GET', token?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const where = { host: '127.0.0.1', port, path: url, method };
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const options: https.RequestOptions = { ...where, headers, rejectUnauthorized: false, agent: false, ...pair };
    const request = https.request(options, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString() }));
    });
    request.on('error', reject);
    request.end();
  });
}

interface Stream {
  readonly status: number;
  readonly socket: Duplex;
  readonly refusal: () => Promise<string>;
}

/** Opens an upgrade through the consumer's API server, as kubectl does. */
async function upgrade(url: string, protocol = 'SPDY/3.1', method = 'POST'): Promise<Stream> {
  const { url: server, ca, adminCert: cert, adminKey: key } = world.servers.consumer;
  const headers = { connection: 'Upgrade', upgrade: protocol, 'x-stream-protocol-version': 'v4.channel.k8s.io' };
  return new Promise((resolve, reject) => {
    const request = https.request(new URL(url, server), {
      method,
      headers,
      ca,
      cert,
      key,
      agent: false,
    });
    request.once('error', reject);
    request.once('upgrade', (response, socket) =>
      resolve({ status: response.statusCode ?? 0, socket, refusal: async () => '' }),
    );
    request.once('response', (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      const whole = new Promise<string>((done) => response.once('end', () => done(Buffer.concat(pieces).toString())));
      resolve({ status: response.statusCode ?? 0, socket: response.socket, refusal: () => whole });
    });
    request.end();
  });
}

const execPath = '/api/v1/namespaces/demo/pods/web/exec?command=sh&command=-c&container=app&stdin=true&stdout=true';

describe('access to the endpoint', () => {
  test('B124 a caller without a client certificate is refused with 401 on every path', async () => {
    for (const url of [
      '/pods',
      '/healthz',
      '/containerLogs/demo/web/app',
      '/exec/demo/web/app?command=id',
      '/stats/summary',
      '/metrics/resource',
      '/nonsense',
    ]) {
      const { status, body } = await ask(url);
      expect({ url, status }).toEqual({ url, status: 401 });
      expect(body).toContain('no client certificate');
    }
  });

  test('a certificate of another authority is refused with 401', async () => {
    const stranger = await CertificateAuthority.create('kubernetes');
    const pair = await stranger.issue({ commonName: 'kube-apiserver-kubelet-client', organization: 'system:masters' });
    const { status, body } = await ask('/pods', pair);
    expect(status).toBe(401);
    expect(body).toContain('client-ca-file');
  });

  test('B124 a known user without rights is refused with 403 that names the right', async () => {
    const { status, body } = await ask('/containerLogs/demo/web/app', await userOf('mallory'));
    expect(status).toBe(403);
    expect(body).toContain('user "mallory" may not get nodes/proxy of node vn1');
  });

  test('a user with rights on this node is let in, and only there', async () => {
    const { api } = world.consumer;
    const role = (name: string, node: string) => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name },
      rules: [{ apiGroups: [''], resources: ['nodes/proxy'], resourceNames: [node], verbs: ['get'] }],
    });
    const bind = (name: string, user: string) => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    });
    for (const [user, node] of [
      ['here', 'vn1'],
      ['elsewhere', 'vn2'],
    ] as const) {
      await api.postPath('/apis/rbac.authorization.k8s.io/v1/clusterroles', role(user, node));
      await api.postPath('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', bind(user, user));
    }
    const here = await userOf('here');
    await eventually('the right in force', async () => (await ask('/healthz', here)).status === 200, {
      withinMs: 30_000,
    });
    expect((await ask('/healthz', await userOf('elsewhere'))).status).toBe(403);
    const list = JSON.parse((await ask('/runningpods/', here)).body);
    expect(list.items.map((pod: { metadata: { name: string } }) => pod.metadata.name)).toEqual(['web']);
    expect((await ask('/exec/demo/web/app?command=id', here, 'POST')).status).toBe(403);
    expect((await ask('/stats/summary', here)).status).toBe(403);
  });

  test('B124 a metrics server comes with the token of its account: its rights count, and tokens of strangers do not', async () => {
    const { api } = world.consumer;
    const account = { namespace: 'demo', name: 'default' };
    const { status } = await api.post<KubeObject, { status: { token: string } }>(serviceAccounts, account, 'token', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {},
    });
    const { token } = status;
    const before = await ask('/metrics/resource', undefined, 'GET', token);
    expect(before.status).toBe(403);
    expect(before.body).toContain('user "system:serviceaccount:demo:default" may not get nodes/');
    await api.postPath('/apis/rbac.authorization.k8s.io/v1/clusterroles', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'meters' },
      rules: [{ apiGroups: [''], resources: ['nodes/metrics'], verbs: ['get'] }],
    });
    await api.postPath('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'meters' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'meters' },
      subjects: [{ kind: 'ServiceAccount', ...account }],
    });
    await eventually(
      'the right in force',
      async () => (await ask('/metrics/resource', undefined, 'GET', token)).status === 200,
      { withinMs: 30_000 },
    );
    expect((await ask('/containerLogs/demo/web/app', undefined, 'GET', token)).status).toBe(403);
    const forged = await ask('/metrics/resource', undefined, 'GET', `${token.slice(0, -4)}AAAA`);
    expect([forged.status, forged.body]).toEqual([401, expect.stringContaining('not one of this cluster')]);
  });

  test('the endpoint soon presents a certificate of the cluster for its address', async () => {
    const subject = await eventually('a verified certificate', () => handshake());
    expect(subject).toBe('system:node:vn1');
  });
});

async function handshake(): Promise<string | undefined> {
  const { ca } = world.servers.consumer;
  return new Promise((resolve) => {
    const socket: TLSSocket = connect({ host: '127.0.0.1', port, ca, rejectUnauthorized: false }, () => {
      const subject = socket.getPeerCertificate().subject?.CN;
      resolve(socket.authorized ? String(subject) : undefined);
      socket.destroy();
    });
    socket.once('error', () => resolve(undefined));
  });
}

/** A client certificate that the consumer's own signer issued. */
async function userOf(commonName: string): Promise<KeyPair> {
  const { api } = world.consumer;
  const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const request = buildCertificateRequest({ commonName, organization: 'people' }, key);
  const wanted = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `user-${commonName}` },
    spec: { request: toBase64(request), signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] },
  } as CertificateSigningRequest;
  await api.delete(certificateSigningRequests, { name: wanted.metadata.name });
  const created = await api.create(certificateSigningRequests, wanted);
  const conditions = [{ type: 'Approved', status: 'True', reason: 'Test', message: '' }];
  await api.update(certificateSigningRequests, { ...created, status: { conditions } }, { subresource: 'approval' });
  const cert = await eventually('the certificate', async () => {
    const { status } = (await api.get(certificateSigningRequests, { name: wanted.metadata.name })) ?? {};
    return status?.certificate;
  });
  return { cert: fromBase64(cert), key };
}

describe('what passes', () => {
  test('B123 a log comes from the pod next door, with its parameters', async () => {
    const text = await world.consumer.api.getPath(
      '/api/v1/namespaces/demo/pods/web/log?container=app&tailLines=0&timestamps=true',
    );
    expect(text).toBe('first line\n');
    const asked = worker.asked.find((line) => line.includes('/containerLogs/demo-cons/web/app'));
    expect(asked).toContain('tailLines=0');
    expect(asked).toContain('timestamps=true');
  });

  test('a followed log ends at the provider when the reader goes away', async () => {
    const { url: server, ca, adminCert: cert, adminKey: key } = world.servers.consumer;
    const before = worker.sockets.size;
    const request = https.get(new URL('/api/v1/namespaces/demo/pods/web/log?container=app&follow=true', server), {
      ca,
      cert,
      key,
      agent: false,
    });
    request.on('error', () => undefined);
    const first = await new Promise<string>((resolve) =>
      request.once('response', (response) => response.once('data', (piece: Buffer) => resolve(piece.toString()))),
    );
    expect(first).toBe('first line\n');
    expect(worker.sockets.size).toBe(before + 1);
    request.destroy();
    await eventually('the stream closed at the provider', () => worker.sockets.size === before);
  });

  test('an upgraded stream carries bytes both ways, more than any buffer holds, and leaves nothing open', async () => {
    const { status, socket } = await upgrade(execPath);
    expect(status).toBe(101);
    const payload = Buffer.alloc(4 * 1024 * 1024, 'isthmus ');
    const echoed = readSome(socket, payload.length);
    socket.write(payload);
    expect((await echoed).equals(payload)).toBe(true);
    const asked = worker.asked.findLast((line) => line.includes('/exec/demo-cons/web/app'));
    expect(asked).toMatch(/^POST .*command=sh&command=-c/);
    expect(asked).toContain('input=1');
    socket.destroy();
    await eventually('the stream closed at the provider', () => worker.sockets.size === 0);
  });

  test('B123 port-forward and attach upgrade too', async () => {
    for (const url of [
      '/api/v1/namespaces/demo/pods/web/portforward',
      '/api/v1/namespaces/demo/pods/web/attach?container=app&stdout=true',
    ]) {
      const { status, socket } = await upgrade(url);
      expect({ url, status }).toEqual({ url, status: 101 });
      socket.write('ping');
      expect((await readSome(socket, 4)).toString()).toBe('ping');
      socket.destroy();
    }
    expect(worker.asked.some((line) => line.startsWith('POST /portForward/demo-cons/web'))).toBe(true);
    await eventually('the streams closed at the provider', () => worker.sockets.size === 0);
  });

  test('B123 what is not there is said: foreign pods, namespaces that are not offloaded, unknown routes', async () => {
    const admin = await pki('admin');
    const refusals = [
      ['/containerLogs/demo/other/app', 'not on node vn1'],
      ['/containerLogs/idle/waiting/app', 'not offloaded'],
      ['/containerLogs/demo/..%2f..%2fsecrets/app', 'has no GET'],
      ['/metrics/unheard-of', 'has no GET'],
      ['/configz', 'has no GET'],
    ] as const;
    for (const [url, reason] of refusals) {
      const { status, body } = await ask(url, admin);
      expect({ url, status }).toEqual({ url, status: 404 });
      expect(body).toContain(reason);
    }
    expect((await ask('/exec/demo/web/app?command=id', admin, 'POST')).status).toBe(400);
  });

  test("the provider's refusal of an upgrade reaches the user", async () => {
    const { status, refusal } = await upgrade(`${execPath}&command=refuse`);
    expect(status).toBe(403);
    expect(await refusal()).toContain('not in my yard');
  });
});

function readSome(socket: Duplex, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let count = 0;
    socket.on('data', (piece: Buffer) => {
      pieces.push(piece);
      count += piece.length;
      if (count >= length) resolve(Buffer.concat(pieces));
    });
    socket.once('close', () => reject(new Error(`closed after ${count} of ${length} bytes`)));
  });
}
