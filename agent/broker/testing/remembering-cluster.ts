/** The cluster rome, which only remembers what is applied to it, and the desired sets that a broker has it apply. */
import { expect } from 'vitest';
import type { Cache, Cluster } from '#kube/model/types.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import { type KubeObject, keyOf, type ResourceType } from '#shared/domain/kube-object.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { createDesiredState } from '../sync/apply-desired.ts';
import type { PeerTrust } from '../trust/peer-trust.ts';

export const signal: AbortSignal = new AbortController().signal;

/** Applies and deletes at once; its caches never lag. */
export function rememberingCluster() {
  const objects = new Map<string, KubeObject>();
  const appliers = new Map<string, readonly string[]>();
  const id = (type: ResourceType, key: string) => `${type.kind}|${key}`;
  let uid = 0;
  const cacheOf = (type: ResourceType) =>
    ({
      type,
      list: () => [...objects.values()].filter((object) => object.kind === type.kind),
      get: () => undefined,
    }) as unknown as Cache<KubeObject>;
  const api = {
    apply: async (type: ResourceType, object: KubeObject, options: { readonly fieldManager: string }) => {
      appliers.set(id(type, keyOf(object)), [options.fieldManager]);
      uid += 1;
      objects.set(id(type, keyOf(object)), { ...object, metadata: { ...object.metadata, uid: `${uid}` } });
      return object;
    },
    mergePatch: async (type: ResourceType, ref: { name: string }, patch: { metadata: { annotations: object } }) => {
      const known = objects.get(id(type, ref.name));
      if (!known) throw new TypeError(`no ${ref.name}`);
      const annotations = { ...known.metadata.annotations, ...patch.metadata.annotations };
      objects.set(id(type, ref.name), { ...known, metadata: { ...known.metadata, annotations } });
    },
    appliers: async (type: ResourceType, ref: { namespace?: string; name: string }) =>
      appliers.get(id(type, ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name)) ?? [],
    get: async (type: ResourceType, ref: { namespace?: string; name: string }) =>
      objects.get(id(type, ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name)),
    delete: async (type: ResourceType, ref: { namespace?: string; name: string }) =>
      objects.delete(id(type, ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name)),
  };
  const cluster = { api, caches: { cache: cacheOf } } as unknown as Cluster;
  return {
    cluster,
    caches: {
      all: [namespaces, resourceSlices, identities, networkKinds.publicKeys, networkKinds.gatewayServers].map((type) =>
        cacheOf(type),
      ),
    },
    object: (kind: string, key: string) => objects.get(`${kind}|${key}`),
    /** As kubectl would: it goes when its finalizers do. */
    deleteByHand(kind: string, key: string): () => void {
      const known = objects.get(`${kind}|${key}`) ?? expect.fail(`no ${key}`);
      const metadata = { ...known.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
      objects.set(`${kind}|${key}`, { ...known, metadata });
      return () => objects.delete(`${kind}|${key}`);
    },
    names: () => [...objects.keys()].sort(),
  };
}

const accepting = { enabled: true, autoAccept: true, peers: ['*'] };
const policies = {
  list: () => [
    {
      metadata: { name: 'default' },
      spec: { asConsumer: accepting, asProvider: { ...accepting, maxResourcesPerPeer: {}, classes: ['default'] } },
    },
  ],
} as unknown as Cache<PeeringPolicy>;

/** What it asks and decides has tests of its own. */
export const believing: PeerTrust = {
  check: async () => undefined,
  takenBack: async () => false,
  announcements: () => () => undefined,
};

export const namespace = 'liqo-tenant-milan';
export const manifests: KubeManifest[] = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: { name: 'milan', namespace, labels: { 'liqo.io/replication': 'true', 'liqo.io/remoteID': 'milan' } },
    spec: { class: 'default' },
  },
];
export const set = (peering: string, revision: number, state: 'present' | 'absent'): DesiredSet => ({
  peering,
  role: 'consumer',
  peer: 'milan',
  revision,
  state,
  peerDead: false,
  objects: state === 'present' ? manifests : [],
});
export const answer = (revision: number, ...sets: DesiredSet[]) => ({ revision, full: false, sets, answers: [] });

export function start(world = rememberingCluster(), trust = believing, log: Log = silentLog) {
  const again = new Set<string>();
  const sets = createDesiredState({
    ...world,
    policies,
    trust,
    clusterId: 'rome',
    log,
    onProgress: () => undefined,
    again: (peering) => again.add(peering),
  });
  /** One pass for each, in the order in which the broker told them, and those that are asked for. */
  const passOnce = async () => {
    for (const peering of sets.peerings()) await sets.reconcile(peering, signal);
    for (const peering of again) await sets.reconcile(peering, signal);
  };
  const settle = async () => {
    for (let pass = 0; pass < 10; pass += 1)
      for (const peering of [...sets.peerings()]) await sets.reconcile(peering, signal);
  };
  const give = (name: string, map: string) =>
    world.cluster.api.apply(
      namespaces,
      {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: {
          name,
          labels: { 'liqo.io/remote-cluster-id': 'milan' },
          annotations: { 'liqo.io/managed-by-namespace-map': map },
        },
      },
      { fieldManager: 'test' },
    );
  return { ...world, sets, settle, passOnce, give };
}
