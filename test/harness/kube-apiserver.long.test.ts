import { access } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Access, callApi } from '#test/testbed/api-ready.ts';
import { startApiServer, type TestApiServer } from './kube-apiserver.ts';

let server: TestApiServer;
let admin: Access;
beforeAll(async () => {
  server = await startApiServer({ controllerManager: true });
  admin = { url: server.url, ca: server.ca, cert: server.adminCert, key: server.adminKey };
}, 900_000);
afterAll(async () => await server?.stop());

const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' }, data: { answer: '42' } };
const read = (): Promise<{ status: number; body: string }> =>
  callApi(admin, '/api/v1/namespaces/default/configmaps/kept');

test('serves an administrator and refuses a stranger', async () => {
  expect((await callApi(admin, '/api/v1/namespaces/default')).status).toBe(200);
  expect((await callApi({ ...admin, cert: '', key: '' }, '/api/v1/namespaces/default')).status).toBe(403);
});

test('keeps its data, address and certificates over a kill and a restart', async () => {
  expect((await callApi(admin, '/api/v1/namespaces/default/configmaps', 'POST', configMap)).status).toBe(201);
  await server.kill();
  await expect(read()).rejects.toThrow(/ECONNREFUSED/);
  await server.start();
  expect(JSON.parse((await read()).body).data).toEqual({ answer: '42' });
});

test('runs the controllers when asked to: a deleted namespace goes away', async () => {
  await callApi(admin, '/api/v1/namespaces', 'POST', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'brief' },
  });
  expect((await callApi(admin, '/api/v1/namespaces/brief', 'DELETE')).status).toBe(200);
  await expect
    .poll(async () => (await callApi(admin, '/api/v1/namespaces/brief')).status, { timeout: 30_000 })
    .toBe(404);
});

test('leaves nothing behind', async () => {
  const other = await startApiServer();
  await other.stop();
  await expect(access(other.dir)).rejects.toThrow(/ENOENT/);
  await expect(callApi({ ...admin, url: other.url, ca: other.ca }, '/readyz')).rejects.toThrow(/ECONNREFUSED/);
});
