/** For the tests of admission: a real API server with our CRDs, asking a running admission server, and kubectl as anybody. */
import { expect, vi } from 'vitest';
import { type Admission, startAdmission } from '#agent/admission/admission.ts';
import { createOffloadingControllers } from '#agent/offloading/offloading.ts';
import { createHooks } from '#agent/webhooks.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { namespaces, serviceAccounts, validatingWebhookConfigurations } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { NamespaceOffloadingSpec } from '#shared/schema/liqo/namespace-offloading.ts';
import { run } from '#test/harness/program.ts';
import { leaseApiServer } from './api-server-pool/lease.ts';

const patience = { timeout: 60_000, interval: 25 };
export const deps = { clock: systemClock, log: silentLog };
export const until = <T>(check: () => Promise<T>): Promise<T> => vi.waitFor(check, patience);
export const offloadingApi = 'offloading.liqo.io/v1beta1';

export const offloading = (namespace: string, spec: Partial<NamespaceOffloadingSpec> = {}, name = 'offloading') => ({
  apiVersion: offloadingApi,
  kind: 'NamespaceOffloading',
  metadata: { namespace, name },
  spec,
});

export interface WebhookCluster {
  readonly kubeconfig: string;
  readonly cluster: Cluster;
  readonly admission: Admission;
  /** Output of kubectl, errors included: what a user reads. */
  kubectl(args: readonly string[], input?: object): Promise<string>;
  create(object: object, ...as: readonly string[]): Promise<string>;
  /** Resolves when pods can be made in it. */
  makeNamespace(name: string, labels?: Record<string, string>): Promise<void>;
  /** Ends controllers and admission; the API server stays. */
  leave(): Promise<void>;
  stop(): Promise<void>;
}

/** With namespaces `liqo`, `plain` and the tenant namespace of consumer `cons`; this cluster is `here`. */
export async function startWebhookCluster(): Promise<WebhookCluster> {
  const server = await leaseApiServer();
  const end = new AbortController();
  const cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, end.signal);

  async function kubectl(args: readonly string[], input?: object): Promise<string> {
    const options = input === undefined ? {} : { input: JSON.stringify(input) };
    const ended = await run(server.kubebox, ['kubectl', '--kubeconfig', server.kubeconfigPath, ...args], options);
    return `${ended.stdout}${ended.stderr}`.trim();
  }
  const create = (object: object, ...as: readonly string[]) => kubectl(['create', '-f', '-', ...as], object);
  async function makeNamespace(name: string, labels: Record<string, string> = {}): Promise<void> {
    await cluster.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    await until(async () =>
      expect(await cluster.api.get(serviceAccounts, { namespace: name, name: 'default' })).toBeDefined(),
    );
  }

  for (const name of ['liqo', 'plain']) await makeNamespace(name);
  await makeNamespace('liqo-tenant-cons', { 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': 'cons' });
  const common = { ...deps, cluster, clusterId: 'here' };
  const admission = await startAdmission({
    ...common,
    hooks: createHooks(common),
    host: '127.0.0.1',
    port: 0,
    callHost: '127.0.0.1',
  });
  const running = [admission.run(end.signal), ...createOffloadingControllers(common).map((c) => c.run(end.signal))];
  await until(async () => {
    const found = await cluster.api.get(validatingWebhookConfigurations, { name: 'isthmus-webhook' });
    expect(found?.webhooks?.length).toBeGreaterThan(5);
  });
  // The API server learns of a new configuration a moment after it is stored.
  const reserved = offloading('liqo');
  await until(async () => expect(await create(reserved, '--dry-run=server')).toMatch(/namespace_reserved/));

  const leave = async (): Promise<void> => {
    end.abort();
    await Promise.all(running);
  };
  return {
    kubeconfig: server.kubeconfig,
    cluster,
    admission,
    kubectl,
    create,
    makeNamespace,
    leave,
    async stop() {
      await leave();
      await server.stop();
    },
  };
}
