/** Shapes what a consumer gets at this provider for one namespace: the Namespace and the RoleBinding to it. */
import { isDeepStrictEqual } from 'node:util';
import type { AccountSubject } from '#agent/model/peer-accounts.ts';
import type { Namespace, RoleBinding } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import type { GuestRules } from '../guests/decide.ts';

export interface Consumer {
  readonly mapKey: string;
  readonly origin: string;
  readonly tenantNamespace: string;
  /** Accounts of its slices, of which it holds tokens. */
  readonly accounts?: readonly AccountSubject[] | undefined;
}

export const podSecurityLabel = 'pod-security.kubernetes.io/enforce';
const remoteRole = 'liqo-virtual-kubelet-remote';
const group = 'rbac.authorization.k8s.io';

export const remoteNamespace = (
  remote: string,
  local: string,
  { mapKey, origin }: Consumer,
  podSecurity: GuestRules['podSecurity'] = 'baseline',
): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: remote,
    labels: {
      [label.remoteClusterId]: origin,
      [label.managed]: 'true',
      // Second line behind the sandbox rules of admission: holds also for what is written past the webhook.
      [podSecurityLabel]: podSecurity,
    },
    annotations: { [annotation.managedByNamespaceMap]: mapKey, [annotation.originalName]: local },
  },
});

export const remoteBinding = (
  remote: string,
  { mapKey, origin, tenantNamespace, accounts = [] }: Consumer,
): RoleBinding => ({
  apiVersion: `${group}/v1`,
  kind: 'RoleBinding',
  metadata: {
    name: tenantNamespace,
    namespace: remote,
    labels: { 'app.kubernetes.io/managed-by': 'liqo', [label.remoteClusterId]: origin, [label.managed]: 'true' },
    annotations: { [annotation.managedByNamespaceMap]: mapKey },
  },
  roleRef: { apiGroup: group, kind: 'ClusterRole', name: remoteRole },
  subjects: [{ apiGroup: group, kind: 'Group', name: origin }, ...accounts],
});

/** True when the binding has its original subjects and role. */
export function isIntact(binding: RoleBinding | undefined, consumer: Consumer): boolean {
  if (!binding) return false;
  const wanted = remoteBinding(binding.metadata.namespace ?? '', consumer);
  return isDeepStrictEqual(binding.roleRef, wanted.roleRef) && isDeepStrictEqual(binding.subjects, wanted.subjects);
}
