/** How liqoctl 1.2.0 talks to an API server (docs/design/control-plane.md#what-does-liqoctl-need): full objects by GET and PUT, polls of 1 s, no watches. */
import { setTimeout as timer } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { KubeApi } from '#kube/model/types.ts';
import { configMaps, namespaces } from '#shared/domain/core-kinds.ts';
import {
  type KubeObject,
  type Namespace,
  type OwnerReference,
  type ResourceType,
  refOf,
} from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';

/** One cluster as one of liqoctl's two clients sees it. */
export interface Target {
  readonly api: KubeApi;
  readonly liqoNamespace: string;
  /** Between two looks; liqoctl's own pace unless told, which counts where its waits are measured. */
  readonly pollMs?: number;
}

export const peerLabel = 'liqo.io/remote-cluster-id';
const liqoctlPollMs = 1_000;

export interface Waited {
  readonly what: string;
  readonly ms: number;
}

/** Polls until `look` has an answer; absence is tolerated, every other failure ends the command. */
export function createWaits(deadlineMs: number, pollMs = liqoctlPollMs) {
  const waited: Waited[] = [];
  const startedAt = Date.now();
  return {
    waited,
    async until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
      const from = Date.now();
      for (;;) {
        const value = await look().catch((error: unknown) => {
          if (codeOf(error) === 'kube_not_found') return undefined;
          throw error;
        });
        if (value !== undefined && value !== false) {
          waited.push({ what, ms: Date.now() - from });
          return value;
        }
        if (Date.now() - startedAt > deadlineMs) throw new Error(`timed out waiting for the condition: ${what}`);
        await timer(pollMs);
      }
    },
  };
}
export type Waits = ReturnType<typeof createWaits>;

/** What of an object that exists gives way to what is wanted; the rest of it stays, and so does all that the server and others keep there. */
export type Replaced = 'named fields' | 'spec' | 'all';

/** GET, change, PUT; no PUT of what is so already. An owner made again under its name takes the place of the one that is gone. */
export async function createOrUpdate<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  wanted: T,
  replaced: Replaced = 'named fields',
): Promise<T> {
  const found = await api.get(type, refOf(wanted));
  if (found === undefined) return api.create(type, asGoSends(wanted));
  const next = changed(found, wanted, replaced);
  return isDeepStrictEqual(next, found) ? found : api.update(type, next);
}

/** POST alone; what exists is left as it is. */
export async function createIfAbsent<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  wanted: T,
): Promise<void> {
  await api.create(type, asGoSends(wanted)).catch((error: unknown) => {
    if (codeOf(error) !== 'kube_already_exists') throw error;
  });
}

/** Structs of Go have no absent members: an API server gets a null time and an empty status with every new object. */
const asGoSends = <T extends KubeObject>(object: T): T =>
  ({ status: {}, ...object, metadata: { ...object.metadata, creationTimestamp: null } }) as unknown as T;

function changed<T extends KubeObject>(found: T, wanted: T, replaced: Replaced): T {
  const { labels, annotations, ownerReferences: owners = [] } = wanted.metadata;
  const keeps = replaced !== 'all';
  const [before, after] = [found as { spec?: object }, wanted as { spec?: object }];
  const isOther = (one: OwnerReference): boolean => !owners.some((o) => o.kind === one.kind && o.name === one.name);
  const ownerReferences = [...(found.metadata.ownerReferences ?? []).filter(isOther), ...owners];
  return {
    ...found,
    ...(after.spec === undefined
      ? {}
      : { spec: replaced === 'named fields' ? { ...before.spec, ...after.spec } : after.spec }),
    metadata: {
      ...found.metadata,
      ...((labels ?? found.metadata.labels) && { labels: keeps ? { ...found.metadata.labels, ...labels } : labels }),
      ...((annotations ?? found.metadata.annotations) && {
        annotations: keeps ? { ...found.metadata.annotations, ...annotations } : annotations,
      }),
      ...(ownerReferences.length > 0 && { ownerReferences }),
    },
  } as T;
}

/** Exactly one, or the command ends. */
export async function theOne<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  namespace: string | undefined,
  labelSelector: string,
): Promise<T | undefined> {
  const found = await api.list(type, { labelSelector, ...(namespace === undefined ? {} : { namespace }) });
  if (found.length > 1) throw new Error(`multiple resources of type ${type.plural} found for ${labelSelector}`);
  return found[0];
}

export async function clusterIdOf({ api, liqoNamespace }: Target): Promise<string> {
  const map = await theOne(api, configMaps, liqoNamespace, 'app.kubernetes.io/name=clusterid-configmap');
  const id = map?.data?.CLUSTER_ID;
  if (id === undefined) throw new Error('unable to get the cluster ID: ConfigMap not found');
  return id;
}

/** With the fallback of a user who may not list namespaces. */
async function findTenantNamespace({ api }: Target, peer: string): Promise<Namespace | undefined> {
  try {
    return await theOne(api, namespaces, undefined, `${peerLabel}=${peer},liqo.io/tenant-namespace`);
  } catch (error) {
    if (codeOf(error) !== 'kube_forbidden') throw error;
    return api.get(namespaces, { name: `liqo-tenant-${peer}` });
  }
}

export async function tenantNamespace(target: Target, peer: string): Promise<string> {
  const found = await findTenantNamespace(target, peer);
  if (found === undefined) throw new Error(`tenant namespace of ${peer} not found`);
  return found.metadata.name;
}

export async function ensureTenantNamespace(target: Target, peer: string): Promise<string> {
  const found = await findTenantNamespace(target, peer);
  if (found !== undefined) return found.metadata.name;
  const security = ['enforce', 'audit', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'privileged']);
  const labels = { ...Object.fromEntries(security), [peerLabel]: peer, 'liqo.io/tenant-namespace': 'true' };
  const metadata = { name: `liqo-tenant-${peer}`, labels };
  await target.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
  return metadata.name;
}
