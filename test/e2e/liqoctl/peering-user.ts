/** `liqoctl generate peering-user` and `delete peering-user` (docs/design/control-plane.md#what-may-a-peering-user-do): the caller approves the request by itself. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import {
  certificateSigningRequests,
  clusterRoles,
  deployments,
  roleBindings,
  roles,
} from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { argument, managerLabels } from './info.ts';
import { createWaits, ensureTenantNamespace, type Target, theOne } from './requests.ts';

const userLabel = 'liqo.io/peering-user-name';
const userOf = (consumer: string): string => `liqo-peer-user-${consumer}`;
const componentLabel = 'app.kubernetes.io/component=peering-user';
const signingMs = 30_000;

export interface PeeringUser {
  readonly commonName: string;
  readonly kubeconfig: string;
}

/** `ca`, PEM, is that of the caller's kubeconfig. */
export async function generatePeeringUser(provider: Target, consumer: string, ca: string): Promise<PeeringUser> {
  const { api, liqoNamespace } = provider;
  const namespace = await ensureTenantNamespace(provider, consumer);
  const manager = await theOne(api, deployments, liqoNamespace, managerLabels);
  const args = manager?.spec?.template.spec?.containers.find(({ name }) => name === 'controller-manager')?.args ?? [];
  const isCompatible = argument(args, 'tls-compatibility-mode') === 'true';
  const server = argument(args, 'api-server-address-override');
  if (server === undefined) throw new Error('no address of the API server');
  const keys = isCompatible ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ed25519');
  const privateKey = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const commonName = `${userOf(consumer)}-${randomBytes(8).toString('hex')}`;
  const labels = { [userLabel]: userOf(consumer) };
  const request = buildCertificateRequest({ commonName, organization: 'liqo.io' }, privateKey);
  const name = userOf(consumer);
  const requested = await api.create(certificateSigningRequests, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name, labels },
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client',
      groups: ['system:authenticated'],
      usages: ['digital signature', 'key encipherment', 'client auth'],
    },
  });
  const approved = { type: 'Approved', status: 'True', reason: 'IdentityManagerApproval', message: 'by liqoctl' };
  await api.update(
    certificateSigningRequests,
    { ...requested, status: { ...requested.status, conditions: [approved] } },
    { subresource: 'approval' },
  );
  const certificate = await createWaits(signingMs, provider.pollMs).until(
    'certificate',
    async () => (await api.get(certificateSigningRequests, { name }))?.status?.certificate,
  );
  const role = await theOne(api, roles, undefined, componentLabel);
  const clusterRole = await theOne(api, clusterRoles, undefined, componentLabel);
  if (role === undefined || clusterRole === undefined) throw new Error('the roles of peering users are missing');
  for (const [suffix, where, kind, granted] of [
    ['liqo-ns-reader', role.metadata.namespace ?? '', 'Role', role],
    ['tenant-ns-writer', namespace, 'ClusterRole', clusterRole],
  ] as const)
    await api.create(roleBindings, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: `${userOf(consumer)}-${suffix}`, namespace: where, labels },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: granted.metadata.name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: commonName }],
    });
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': consumer,
    clusters: [{ name: consumer, cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [
      {
        name: `${consumer}-user`,
        user: { 'client-certificate-data': certificate, 'client-key-data': base64(privateKey) },
      },
    ],
    contexts: [{ name: consumer, context: { cluster: consumer, user: `${consumer}-user`, namespace } }],
  };
  return { commonName, kubeconfig: JSON.stringify(kubeconfig) };
}

export async function deletePeeringUser({ api }: Target, consumer: string): Promise<void> {
  const labelSelector = `${userLabel}=${userOf(consumer)}`;
  for (const one of await api.list(roleBindings, { labelSelector })) await api.delete(roleBindings, refOf(one));
  for (const one of await api.list(certificateSigningRequests, { labelSelector }))
    await api.delete(certificateSigningRequests, refOf(one));
}
