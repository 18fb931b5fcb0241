/** A pool of its own beside the run's: what one holder of an API server leaves there, the next one does not find. */
import { mkdtempSync, rmSync } from 'node:fs';
import type net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '../eventually.ts';
import { AdminApi, readState } from './clean.ts';
import type { Pool } from './pool.ts';
import { createApiServerPool, describeServer, type PooledApiServer } from './serving.ts';
import { leaseFrom, servePool } from './socket.ts';
import { differenceOf, wordsOf } from './state.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-pool-test-'));
const socket = path.join(folder, 'pool.sock');
const lines: string[] = [];
let pool: Pool<PooledApiServer>;
let listener: net.Server;
beforeAll(async () => {
  pool = createApiServerPool((line) => lines.push(line));
  listener = await servePool(socket, pool, describeServer);
}, 900_000);
afterAll(async () => {
  listener?.close();
  await pool?.close();
  rmSync(folder, { recursive: true });
});

async function lease() {
  const { server, release } = await leaseFrom(socket);
  const { url, ca, adminCert: cert, adminKey: key } = server;
  return { url, release, api: new AdminApi({ url, ca, cert, key }) };
}

async function create(api: AdminApi, collection: string, object: object): Promise<void> {
  const { status, body } = await api.call('POST', collection, object);
  expect(status, body).toBe(201);
}

const virtualNodesOf = (namespace: string): string =>
  `/apis/${virtualNodes.group}/${virtualNodes.version}/namespaces/${namespace}/${virtualNodes.plural}`;

test('objects of every scope, a kind, a webhook that refuses everything and finalizers that nothing removes are gone for the next holder', async () => {
  const first = await lease();
  const before = await readState(first.api);
  const { api } = first;
  await create(api, '/api/v1/namespaces', { metadata: { name: 'left' } });
  const stuck = { name: 'stuck', finalizers: ['isthmus.test/stays'] };
  await create(api, '/api/v1/namespaces/left/configmaps', { metadata: stuck });
  await create(api, virtualNodesOf('left'), {
    apiVersion: `${virtualNodes.group}/${virtualNodes.version}`,
    kind: 'VirtualNode',
    metadata: { name: 'milan', finalizers: ['isthmus.test/stays'] },
    spec: { clusterID: 'milan' },
  });
  await create(api, '/api/v1/nodes', { metadata: { name: 'left' } });
  await create(api, '/api/v1/namespaces/default/pods', {
    metadata: { name: 'left' },
    spec: { nodeName: 'left', automountServiceAccountToken: false, containers: [{ name: 'main', image: 'left' }] },
  });
  await create(api, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: 'lefts.isthmus.test' },
    spec: {
      group: 'isthmus.test',
      names: { plural: 'lefts', kind: 'Left' },
      scope: 'Cluster',
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  });
  const left = {
    apiVersion: 'isthmus.test/v1',
    kind: 'Left',
    metadata: { name: 'one', finalizers: ['isthmus.test/x'] },
  };
  await eventually(
    'the kind',
    async () => (await api.call('POST', '/apis/isthmus.test/v1/lefts', left)).status === 201,
  );
  const labels = { metadata: { labels: { left: 'here' } } };
  expect((await api.call('PATCH', '/api/v1/namespaces/default', labels)).status).toBe(200);
  expect((await api.call('DELETE', '/api/v1/namespaces/default/configmaps/kube-root-ca.crt')).status).toBe(200);
  await create(api, '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
    metadata: { name: 'refuses-everything' },
    webhooks: [
      {
        name: 'all.isthmus.test',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
  const object = { metadata: { name: 'refused' } };
  const isRefused = async () => (await api.call('POST', '/api/v1/namespaces', object)).status >= 400;
  await eventually('the webhook refuses', isRefused);

  api.close();
  first.release();
  await eventually('the pool has it back', () => pool.counts.held === 0);
  const second = await lease();
  expect(second.url, lines.join('\n')).toBe(first.url);
  expect(wordsOf(differenceOf(before, await readState(second.api)))).toBe('');
  await create(second.api, '/api/v1/namespaces', { metadata: { name: 'left' } });
  await eventually(
    'the controllers still run',
    async () => (await second.api.call('GET', '/api/v1/namespaces/left/serviceaccounts/default')).status === 200,
  );
  second.api.close();
  second.release();
}, 120_000);
