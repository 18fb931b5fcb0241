/** Credentials by which a consumer's administrator peers without rights on the provider but these (docs/design/control-plane.md#what-may-a-peering-user-do). */
import { randomBytes } from 'node:crypto';
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import { certificateSigningRequests, namespaces, roleBindings } from '#shared/domain/core-kinds.ts';
import { type RoleBinding, refOf } from '#shared/domain/kube-object.ts';
import { controlPlaneGroup, label, name, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { peeringUserSystemRole, peeringUserTenantRole } from '#shared/domain/peering-user-roles.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createKeyAndRequest, signedByCluster } from './client-certificate.ts';
import { readClusterFacts } from './cluster-facts.ts';
import { kubeconfigText } from './kubeconfig.ts';

const userLabel = 'liqo.io/peering-user-name';
const rbac = 'rbac.authorization.k8s.io';
const userOf = (consumer: string): string => `liqo-peer-user-${consumer}`;
const selectorOf = (consumer: string): string => `${userLabel}=${userOf(consumer)}`;

/** Resolves with a kubeconfig. Fails with `already_exists` while the consumer has a peering user. */
export async function createPeeringUser(
  io: CliIo,
  kube: KubeClient,
  consumer: string,
  lifetimeSeconds: number,
): Promise<string> {
  const facts = await readClusterFacts(kube, 'provider');
  if (facts.id === consumer) {
    throw new AppError('invalid_input', `this is the cluster ${consumer} itself, which cannot peer with itself`, {
      detail: { field: 'consumer', value: consumer, remedy: 'name the cluster ID of the consumer' },
    });
  }
  const selector = selectorOf(consumer);
  const [bound, requested] = await Promise.all([
    kube.list(roleBindings, selector),
    kube.list(certificateSigningRequests, selector),
  ]);
  if (bound.length > 0 || requested.length > 0) {
    throw new AppError('already_exists', `${consumer} has a peering user here already`, {
      detail: { remedy: `take it back first: isthmus delete peering-user ${consumer} --kubeconfig FILE` },
    });
  }
  const namespace = await ensureTenantNamespace(kube, consumer);
  const commonName = `${userOf(consumer)}-${randomBytes(16).toString('hex')}`;
  const { privateKey, request } = await createKeyAndRequest({ commonName, organization: controlPlaneGroup });
  const labels = { [userLabel]: userOf(consumer) };
  const signing = { name: userOf(consumer), exact: true, labels, lifetimeSeconds };
  const certificate = await signedByCluster(io, kube, request, signing);
  await kube.create(
    roleBindings,
    binding(consumer, commonName, 'liqo-ns-reader', systemNamespace, 'Role', peeringUserSystemRole),
  );
  await kube.create(
    roleBindings,
    binding(consumer, commonName, 'tenant-ns-writer', namespace, 'ClusterRole', peeringUserTenantRole),
  );
  const { apiServer: server, ca } = facts;
  return kubeconfigText({
    cluster: consumer,
    user: `${consumer}-user`,
    server,
    ...(ca === undefined ? {} : { ca }),
    certificate,
    privateKey,
    namespace,
  });
}

/** The default name is needed: without the right to list namespaces liqoctl asks for this one. */
async function ensureTenantNamespace(kube: KubeClient, consumer: string): Promise<string> {
  const wanted = name.tenantNamespace(consumer);
  const known = await kube.list(namespaces, `${label.tenantNamespace},${label.remoteClusterId}=${consumer}`);
  const other = known.find(({ metadata }) => metadata.name !== wanted);
  if (other !== undefined) {
    throw new AppError('in_use', `the tenant namespace of ${consumer} is ${other.metadata.name}`, {
      detail: { remedy: `a peering user works in ${wanted} only: end that peering and delete the namespace first` },
    });
  }
  if (known.length > 0) return wanted;
  const security = ['enforce', 'audit', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'privileged']);
  const labels = {
    ...Object.fromEntries(security),
    [label.tenantNamespace]: 'true',
    [label.remoteClusterId]: consumer,
  };
  await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: wanted, labels } });
  return wanted;
}

const binding = (
  consumer: string,
  user: string,
  suffix: string,
  namespace: string,
  kind: 'Role' | 'ClusterRole',
  role: string,
): RoleBinding => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name: `${userOf(consumer)}-${suffix}`, namespace, labels: { [userLabel]: userOf(consumer) } },
  roleRef: { apiGroup: rbac, kind, name: role },
  subjects: [{ apiGroup: rbac, kind: 'User', name: user }],
});

/** The certificate stays valid and may do nothing. False when there was no such user. */
export async function deletePeeringUser(kube: KubeClient, consumer: string): Promise<boolean> {
  const selector = selectorOf(consumer);
  const bound = await kube.list(roleBindings, selector);
  for (const one of bound) await kube.delete(roleBindings, refOf(one));
  const requested = await kube.list(certificateSigningRequests, selector);
  for (const one of requested) await kube.delete(certificateSigningRequests, refOf(one));
  return bound.length + requested.length > 0;
}
