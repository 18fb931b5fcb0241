/** What a real API server writes into its audit log, read as steps of an exchange. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { namespaces, secrets } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { serveOwnKinds } from '#test/harness/own-kinds.ts';
import { policyWithBodies, writesIn } from './audit.ts';
import { stepsOf } from './capture.ts';
import { inOrder } from './order.ts';
import { Words } from './words.ts';

let dir: string;
let server: TestApiServer;
let api: KubeApi;

beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-capture-'));
  const policy = path.join(dir, 'policy.json');
  const nothingElse = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'None' }] };
  await writeFile(policy, JSON.stringify(policyWithBodies(nothingElse)));
  const flags = [`--audit-policy-file=${policy}`, `--audit-log-path=${path.join(dir, 'audit.log')}`];
  server = await startApiServer({ flags });
  api = createKubeApi(await connectKubeconfig(server.kubeconfig), { clock: systemClock, log: silentLog });
  await serveOwnKinds(server, api);
});
afterAll(async () => {
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

test('each write is a step with what it changed, defaults included, and what Kubernetes collects is gone', async () => {
  const namespace = 'liqo-tenant-rome';
  const ref = { namespace, name: 'rome' };
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const publicKey = Buffer.from('-----BEGIN PUBLIC KEY-----\nx').toString('base64');
  const tenant = await api.create(tenants, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Tenant',
    metadata: { ...ref, labels: { a: 'b' } },
    // The server fills in what is left out.
    spec: { clusterID: 'rome', publicKey } as Tenant['spec'],
  });
  const owner = { apiVersion: tenant.apiVersion, kind: 'Tenant', name: 'rome', uid: tenant.metadata.uid ?? '' };
  await api.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name: 'liqo-nonce', ownerReferences: [owner] },
    stringData: { nonce: 'n' },
  } as never);
  await api.mergePatch(tenants, ref, { metadata: { finalizers: ['liqo.io/one'] } });
  await api.mergePatch(tenants, ref, { status: { tenantNamespace: namespace } }, { subresource: 'status' });
  await api.delete(tenants, ref);
  await api.mergePatch(tenants, ref, { metadata: { finalizers: null } });
  await eventually(
    'the Secret is collected',
    async () => (await api.get(secrets, { namespace, name: 'liqo-nonce' })) === undefined,
  );
  const logged = async () => {
    const seen = (await writesIn(path.join(dir, 'audit.log'))).map((write) => ({ at: 'milan' as const, write }));
    return stepsOf(
      inOrder(seen),
      new Words({}),
      ({ user }) => (user === 'admin' ? 'liqoctl' : undefined),
      ({ write }) => write.namespace === namespace,
    );
  };
  // The log has a request once it is answered.
  const steps = await eventually('the end in the log', async () => {
    const found = await logged();
    return found.at(-1)?.absent?.kind === 'Secret' ? found : undefined;
  });
  const id = { apiVersion: 'authentication.liqo.io/v1beta1', kind: 'Tenant' };
  const secret = { apiVersion: 'v1', kind: 'Secret' };
  const made = { by: 'liqoctl', at: 'milan' };
  const owned = { namespace, name: 'liqo-nonce', ownerReferences: [{ kind: 'Tenant', name: 'rome' }] };
  expect(steps).toEqual([
    {
      ...made,
      create: {
        ...id,
        metadata: { ...ref, labels: { a: 'b' } },
        spec: { clusterID: 'rome', publicKey: '$publicKey', authzPolicy: 'KeysExchange', tenantCondition: 'Active' },
      },
    },
    { ...made, create: { ...secret, metadata: owned, data: { nonce: '$nonce' }, type: 'Opaque' } },
    { ...made, update: { ...id, metadata: { ...ref, finalizers: ['liqo.io/one'] } } },
    { ...made, status: { ...id, metadata: ref, status: { tenantNamespace: namespace } } },
    { ...made, delete: { ...id, metadata: ref } },
    { ...made, update: { ...id, metadata: { ...ref, finalizers: [] } } },
    { by: 'isthmus', at: 'milan', absent: { ...id, metadata: ref } },
    { by: 'isthmus', at: 'milan', absent: { ...secret, metadata: { namespace, name: 'liqo-nonce' } } },
  ]);
});
