/** Brings the bindings of one consumer to what they should be: missing ones made, changed ones corrected, others taken away. */
import { isDeepStrictEqual } from 'node:util';
import { accountSubject, accountSubjects } from '#agent/model/peer-accounts.ts';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import { covers, createUnlessThere, deleteObject } from '#kube/writes/write-if-changed.ts';
import {
  type ClusterRole,
  type ClusterRoleBinding,
  clusterRoleBindings,
  roleBindings,
} from '#shared/domain/core-kinds.ts';
import {
  type KubeObject,
  type ResourceType,
  type RoleBinding,
  refOf,
  type Secret,
} from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { remoteRoleLabel, remoteRoleName } from '#shared/domain/remote-roles.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { buildClusterwideBinding, buildTenantBinding } from './tenant-bindings.ts';

export interface BindingCaches {
  readonly roles: Cache<ClusterRole>;
  readonly bound: Cache<RoleBinding>;
  readonly boundWide: Cache<ClusterRoleBinding>;
  readonly secrets: Cache<Secret>;
}

export interface Access {
  /** Rights in the tenant namespace. `leave`: another component grants them. */
  readonly controlPlane: boolean | 'leave';
  readonly clusterwide: boolean;
  /** The consumer has just been given a token for its control plane: the cache may not show its Secret yet. */
  readonly hasToken?: boolean;
}

const rolesNamed = (roles: Cache<ClusterRole>, name: string): ClusterRole[] =>
  roles.list().filter((role) => role.metadata.labels?.[remoteRoleLabel] === name);

/** The label of a role that should be there and is not. */
export const missingRole = (roles: Cache<ClusterRole>): string | undefined =>
  [remoteRoleName.controlPlane, remoteRoleName.clusterwide].find((name) => rolesNamed(roles, name).length === 0);

const isTenantBinding = (binding: KubeObject): boolean => binding.metadata.name.startsWith('liqo-binding-');

/** True when something was changed. */
export async function ensureBindings(
  api: KubeApi,
  caches: BindingCaches,
  tenant: Tenant,
  access: Access,
  signal: AbortSignal,
): Promise<boolean> {
  const consumer = tenant.spec.clusterID;
  const { namespace = '' } = tenant.metadata;
  const known = accountSubjects(caches.secrets.list(), namespace, 'control-plane');
  const controlPlane = known.length === 0 && access.hasToken ? [accountSubject(namespace, undefined)] : known;
  const slices = accountSubjects(caches.secrets.list(), namespace, 'slices');
  const own =
    access.controlPlane === true
      ? rolesNamed(caches.roles, remoteRoleName.controlPlane).map((role) =>
          buildTenantBinding(tenant, role, controlPlane),
        )
      : [];
  const wide = access.clusterwide
    ? rolesNamed(caches.roles, remoteRoleName.clusterwide).map((role) => buildClusterwideBinding(tenant, role, slices))
    : [];
  const isPeers = (binding: KubeObject): boolean =>
    binding.metadata.labels?.[label.remoteClusterId] === consumer && isTenantBinding(binding);
  const here = caches.bound
    .list()
    .filter((binding) => isPeers(binding) && binding.metadata.namespace === tenant.metadata.namespace);
  const everywhere = caches.boundWide.list().filter(isPeers);
  const changedHere = access.controlPlane !== 'leave' && (await converge(api, roleBindings, here, own, signal));
  const changedWide = await converge(api, clusterRoleBindings, everywhere, wide, signal);
  return changedHere || changedWide;
}

type Binding = RoleBinding | ClusterRoleBinding;

async function converge<T extends Binding>(
  api: KubeApi,
  type: ResourceType<T>,
  actual: readonly T[],
  wanted: readonly T[],
  signal: AbortSignal,
): Promise<boolean> {
  let changed = false;
  for (const binding of actual) {
    if (wanted.some((one) => one.metadata.name === binding.metadata.name)) continue;
    changed = (await deleteObject(api, type, binding, signal)) || changed;
  }
  for (const binding of wanted) {
    const now =
      actual.find((one) => one.metadata.name === binding.metadata.name) ??
      (await api.get(type, refOf(binding), signal));
    changed = (await put(api, type, now, binding, signal)) || changed;
  }
  return changed;
}

async function put<T extends Binding>(
  api: KubeApi,
  type: ResourceType<T>,
  now: T | undefined,
  wanted: T,
  signal: AbortSignal,
): Promise<boolean> {
  if (now === undefined) {
    await createUnlessThere(api, type, wanted, signal);
    return true;
  }
  const { labels, ownerReferences } = wanted.metadata;
  const isRight =
    isDeepStrictEqual(now.subjects, wanted.subjects) &&
    isDeepStrictEqual(now.roleRef, wanted.roleRef) &&
    covers(now.metadata.labels, labels ?? {}) &&
    (ownerReferences === undefined || covers(now.metadata.ownerReferences, ownerReferences));
  if (isRight) return false;
  if (!isDeepStrictEqual(now.roleRef, wanted.roleRef)) {
    // The role of a binding cannot be changed; a binding to another role is another binding.
    await deleteObject(api, type, now, signal);
    await api.create(type, wanted, {}, signal);
    return true;
  }
  const metadata = {
    ...now.metadata,
    labels: { ...now.metadata.labels, ...labels },
    ...(ownerReferences ? { ownerReferences } : {}),
  };
  await api.update(type, { ...wanted, metadata }, {}, signal);
  return true;
}
