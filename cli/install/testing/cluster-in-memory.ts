/** Clusters in memory, and Isthmus taken out of them. */
import { capturedIo } from '#cli/captured-io.ts';
import type { KubeClient } from '#cli/cluster/open.ts';
import { createProgress } from '#cli/output/progress.ts';
import { mergePatched } from '#kube/http/testing/merge-patched.ts';
import {
  certificateSigningRequests,
  clusterRoleBindings,
  namespaces,
  nodes,
  pods,
  roleBindings,
  secrets,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, ObjectMeta, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { finalizer } from '#shared/domain/liqo-keys.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { removeIsthmus } from '../remove.ts';

type Any = KubeObject & Record<string, unknown>;
interface Stored {
  readonly type: ResourceType;
  readonly object: Any;
}

/** A cluster in memory: namespaces take along what is in them, finalizers hold what is deleted. `stuck`: pods that never end. */
export function clusterOf(
  objects: readonly (readonly [ResourceType, Partial<ObjectMeta> & { name: string }, object?])[],
) {
  const keyOf = (type: ResourceType, { namespace, name }: ObjectRef) => `${type.plural} ${namespace ?? ''}/${name}`;
  const all = new Map<string, Stored>();
  for (const [type, metadata, more = {}] of objects)
    all.set(keyOf(type, metadata), { type, object: { apiVersion: 'v1', kind: type.kind, metadata, ...more } });
  const mark = ({ object }: Stored): void => {
    object.metadata.deletionTimestamp ??= '2026-11-22T00:00:00Z';
  };
  const settle = (): void => {
    for (const [key, { type, object }] of all) {
      if (object.metadata.deletionTimestamp === undefined || object.metadata.finalizers?.length) continue;
      const isNamespace = type.plural === namespaces.plural;
      const inside = [...all.values()].filter(
        (one) => isNamespace && one.object.metadata.namespace === object.metadata.name,
      );
      if (inside.length === 0) all.delete(key);
      else inside.forEach(mark);
    }
  };
  const list = async (type: ResourceType, selector?: string, namespace?: string): Promise<Any[]> => {
    settle();
    const wanted = (selector ?? '').split(',').filter(Boolean);
    const has = ({ metadata: { labels = {} } }: Any) =>
      wanted.every((one) => {
        const [key = '', value] = one.split('=');
        return value === undefined ? key in labels : labels[key] === value;
      });
    return [...all.values()]
      .filter((one) => one.type.plural === type.plural && one.type.group === type.group)
      .map(({ object }) => object)
      .filter((object) => has(object) && (namespace === undefined || object.metadata.namespace === namespace));
  };
  const kube = {
    server: 'https://192.0.2.1:6443',
    get: async (type: ResourceType, ref: ObjectRef) => all.get(keyOf(type, ref))?.object,
    list,
    collect: async (type: ResourceType, keep: (object: Any) => unknown) =>
      (await list(type)).flatMap((object) => keep(object) ?? []),
    async delete(type: ResourceType, ref: ObjectRef) {
      const found = all.get(keyOf(type, ref));
      if (found) mark(found);
      settle();
      return found !== undefined;
    },
    async mergePatch(type: ResourceType, ref: ObjectRef, patch: object) {
      const found = all.get(keyOf(type, ref));
      if (found) all.set(keyOf(type, ref), { type, object: mergePatched(found.object, patch) as Any });
      settle();
    },
  } as unknown as KubeClient;
  return {
    kube,
    find: (type: ResourceType, ref: ObjectRef) => all.get(keyOf(type, ref))?.object,
    add: (type: ResourceType, metadata: Partial<ObjectMeta> & { name: string }) =>
      void all.set(keyOf(type, metadata), { type, object: { apiVersion: 'v1', kind: type.kind, metadata } }),
  };
}

export const io = () => {
  let now = 0;
  const sleep = async (ms: number): Promise<void> => {
    now += ms;
  };
  return capturedIo({ clock: { now: () => now, sleep } });
};
export const remove = (kube: KubeClient, purge: boolean) => {
  const under = io();
  return removeIsthmus(under, createProgress(under), kube, { purge, timeoutMs: 60_000 });
};

const managed = { 'liqo.io/managed': 'true' };
const peer = { 'liqo.io/remote-cluster-id': 'milan' };
export const tenantNamespace = 'liqo-tenant-milan';
/** A cluster that was peered both ways and whose agent is gone. */
export const peered = () =>
  clusterOf([
    [namespaces, { name: 'liqo' }],
    [namespaces, { name: tenantNamespace, labels: { ...peer, 'liqo.io/tenant-namespace': 'true' } }],
    [namespaces, { name: 'guest-milan', labels: { ...peer, ...managed } }],
    [namespaces, { name: 'demo', labels: { team: 'shop', 'liqo.io/scheduling-enabled': 'true' } }],
    [namespaces, { name: 'by-hand', labels: { 'liqo.io/scheduling-enabled': 'true' } }],
    [namespaceOffloadings, { namespace: 'demo', name: 'offloading', finalizers: [finalizer.namespaceOffloading] }],
    [tenants, { namespace: tenantNamespace, name: 'milan', finalizers: [finalizer.tenant] }],
    [
      secrets,
      {
        namespace: tenantNamespace,
        name: 'kubeconfig',
        labels: peer,
        finalizers: [finalizer.replicatorSecret, 'a.example/b'],
      },
    ],
    [secrets, { namespace: 'liqo', name: 'authentication-keys' }],
    [foreignClusters, { name: 'milan' }],
    [networkKinds.internalNodes, { name: 'node-1', finalizers: ['internalnodes-route.liqo.io/finalizer'] }],
    [nodes, { name: 'milan', labels: { 'liqo.io/type': 'virtual-node' } }],
    [
      nodes,
      { name: 'node-1', labels: { 'networking.isthmus.dev/node-process': 'shared', 'kubernetes.io/os': 'linux' } },
    ],
    [clusterRoleBindings, { name: 'liqo-binding-milan', labels: { ...managed, ...peer } }],
    [roleBindings, { namespace: 'guest-milan', name: 'liqo-binding', labels: { ...managed, ...peer } }],
    [clusterRoleBindings, { name: 'cluster-admin' }],
    [certificateSigningRequests, { name: 'liqo-milan', labels: managed }],
    [
      pods,
      { namespace: 'demo', name: 'waits', labels: { app: 'web', 'isthmus.dev/waiting-for-offloading': 'true' } },
      { spec: { schedulingGates: [{ name: 'isthmus.dev/offloading' }, { name: 'example.com/quota' }] } },
    ],
  ]);
