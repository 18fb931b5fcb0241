import https from 'node:https';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { metricsManifests, metricsReader } from '#cli/install/metrics-manifests.ts';
import { createKubeApi } from '#kube/http/client.ts';
import type { ClusterConnection } from '#kube/http/connection.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { clusterRoleBindings, clusterRoles, namespaces, serviceAccounts } from '#shared/domain/core-kinds.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { Registry } from '#shared/metrics/registry.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { connectAsAgent, giveAgentRights } from '#test/harness/agent-account.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { eventually } from '#test/harness/eventually.ts';
import { countClient } from './process.ts';
import { serveMetrics } from './server.ts';

const stop = new AbortController();
const connections: ClusterConnection[] = [];
let admin: KubeApi;
let port: number;

beforeAll(async () => {
  const server = await leaseApiServer();
  const administrator = await connectKubeconfig(server.kubeconfig);
  connections.push(administrator);
  admin = createKubeApi(administrator, { clock: systemClock, log: silentLog });
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: systemNamespace } } as const;
  await admin.apply(namespaces, namespace, { fieldManager: 'test' });
  await giveAgentRights(admin);
  const agent = await connectAsAgent(server);
  connections.push(agent);
  const registry = new Registry();
  const metrics = countClient(registry, 'local');
  const api = createKubeApi(agent, { clock: systemClock, log: silentLog, metrics });
  const settings = { host: '127.0.0.1', port: 0, access: 'authenticated' } as const;
  ({ port } = await serveMetrics(settings, { registry, api, clock: systemClock, log: silentLog }, stop.signal));
});

afterAll(() => {
  stop.abort();
  for (const connection of connections) connection.close();
});

/** Of a new account. */
async function tokenOf(name: string): Promise<string> {
  const metadata = { name, namespace: systemNamespace };
  await admin.create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata, spec: { audiences: [] } };
  const path = `/api/v1/namespaces/${systemNamespace}/serviceaccounts/${name}/token`;
  const { status } = await admin.postPath<{ readonly status: { readonly token: string } }>(path, request);
  return status.token;
}

const scrape = (token?: string): Promise<{ status: number | undefined; text: string }> =>
  new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const options = { host: '127.0.0.1', port, path: '/metrics', headers, agent: false, rejectUnauthorized: false };
    https
      .get(options, async (answer) => {
        let text = '';
        for await (const piece of answer) text += piece;
        resolve({ status: answer.statusCode, text });
      })
      .once('error', reject);
  });

test('an API server says which scrapers are served: those that are bound to the role that comes with --metrics', async () => {
  expect((await scrape()).status).toBe(401);
  expect((await scrape('made-up')).status).toBe(401);
  expect((await scrape(await tokenOf('stranger'))).status).toBe(403);
  const role = metricsManifests('authenticated', true).find(({ kind }) => kind === 'ClusterRole');
  if (role === undefined) throw new Error('--metrics has no ClusterRole');
  await admin.apply(clusterRoles, role, { fieldManager: 'test' });
  await admin.create(clusterRoleBindings, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'isthmus-metrics' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metricsReader },
    subjects: [{ kind: 'ServiceAccount', name: 'prometheus', namespace: systemNamespace }],
  });
  const token = await tokenOf('prometheus');
  const reviewed = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' } as const;
  // The API server's own cache of roles lags behind.
  await eventually('the right to count', async () => {
    const user = `system:serviceaccount:${systemNamespace}:prometheus`;
    const spec = { user, nonResourceAttributes: { path: '/metrics', verb: 'get' } };
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const { status } = await admin.postPath<{ status: { allowed: boolean } }>(path, { ...reviewed, spec });
    return status.allowed;
  });
  const { status, text } = await scrape(token);
  expect(status).toBe(200);
  expect(text).toContain('isthmus_api_requests_total{target="local",verb="POST",code="201"}');
});
