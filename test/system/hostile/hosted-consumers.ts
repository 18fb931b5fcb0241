/** Consumers at one provider, with the identities and the grants that a peering gives them, and what they send. */
import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'vitest';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { certificateSigningRequests, roleBindings, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { LimitsEnforcement } from '#shared/schema/definition/fields.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { deps, offloadingApi, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';

export interface Grant {
  readonly consumer: string;
  /** The user of its virtual kubelet. */
  readonly slice: string;
  readonly resources: Readonly<Record<string, string>>;
  /** Default None. */
  readonly limitsEnforcement?: LimitsEnforcement;
}

/** With a certificate that the provider signed. */
export async function identity(
  under: WebhookCluster,
  [commonName, organization]: readonly [string, string],
  signal: AbortSignal,
): Promise<KubeApi> {
  const { api: admin } = under.cluster;
  const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const request = toBase64(buildCertificateRequest({ commonName, organization }, key));
  const created = await admin.create(certificateSigningRequests, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: `of-${commonName}` },
    spec: { request, signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] },
  } as never);
  const conditions = [{ type: 'Approved', status: 'True', reason: 'Test', message: '' }];
  await admin.update(certificateSigningRequests, { ...created, status: { conditions } } as never, {
    subresource: 'approval',
  });
  const certificate = await until(async () => {
    const found = (await admin.get(certificateSigningRequests, { name: created.metadata.name }))?.status?.certificate;
    expect(found).toBeDefined();
    return found as unknown as string;
  });
  const config = JSON.parse(under.kubeconfig);
  config.users[0].user = { 'client-certificate-data': certificate, 'client-key-data': toBase64(key) };
  return openCluster(await connectKubeconfig(JSON.stringify(config)), deps, signal).api;
}

/** Its namespace `apps` is `apps-CONSUMER` here. */
export async function guest(
  under: WebhookCluster,
  { consumer, slice, resources, limitsEnforcement = 'None' }: Grant,
): Promise<void> {
  const { api: admin } = under.cluster;
  const labels = { 'liqo.io/replicated': 'true', 'liqo.io/originID': consumer, 'liqo.io/remote-cluster-id': consumer };
  const tenant = `liqo-tenant-${consumer}`;
  if (consumer !== 'cons') {
    await under.makeNamespace(tenant, { 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': consumer });
  }
  await admin.create(namespaceMaps, {
    apiVersion: offloadingApi,
    kind: 'NamespaceMap',
    metadata: { namespace: tenant, name: 'here', labels: { ...labels, 'liqo.io/replication': 'false' } },
    spec: { desiredMapping: { apps: `apps-${consumer}` } },
  });
  await admin.create(resourceSlices, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: {
      namespace: tenant,
      name: 'here',
      labels: { ...labels, 'liqo.io/replication': 'false' },
      annotations: { 'liqo.io/cordon': 'false', 'isthmus.dev/drain': 'false' },
    },
    spec: { class: 'default', consumerClusterID: consumer },
  });
  await admin.create(quotas, {
    apiVersion: offloadingApi,
    kind: 'Quota',
    metadata: { namespace: tenant, name: slice, labels: { 'liqo.io/remote-cluster-id': consumer } },
    spec: { user: slice, limitsEnforcement, resources: { ...resources } },
  });
  await admin.create(roleBindings, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { namespace: tenant, name: `control-plane-${consumer}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'liqo-remote-controlplane' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: consumer }],
  });
  await until(async () =>
    expect(await admin.get(serviceAccounts, { namespace: `apps-${consumer}`, name: 'default' })).toBeDefined(),
  );
}

export const container = { name: 'app', image: 'app:1', resources: { requests: { cpu: '10m', memory: '1Mi' } } };
export const shadow = (
  namespace: string,
  name: string,
  pod: unknown = { containers: [container] },
  labels: Record<string, string> = { 'offloading.liqo.io/origin': 'cons' },
): ShadowPod =>
  ({ apiVersion: offloadingApi, kind: 'ShadowPod', metadata: { namespace, name, labels }, spec: { pod } }) as ShadowPod;
export const origin = (id: string) => ({ 'offloading.liqo.io/origin': id });

/** As many at a time as a client with many connections. */
export async function inParallel(count: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: 24 }, worker));
}
