/** For the agent's channel: a cluster in memory that applies, deletes and tells its caches at once, and plays the controllers of a peering. */
import { mergePatched } from '#kube/http/testing/merge-patched.ts';
import type { Cache, Change, Cluster } from '#kube/model/types.ts';
import { type KubeObject, type ObjectRef, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import { selects } from './label-selector.ts';

type Loose = KubeObject & { spec?: Json; status?: Json; data?: Json };
type Json = Record<string, unknown>;

const keyOf = (kind: string, { namespace, name }: ObjectRef): string => `${kind}/${namespace ?? ''}/${name}`;

interface Applying {
  readonly fieldManager: string;
  readonly subresource?: string;
}

export class RememberingCluster {
  readonly #objects = new Map<string, Loose>();
  readonly #listeners = new Map<string, Set<(change: Change<KubeObject>) => void>>();
  readonly #appliers = new Map<string, ReadonlySet<string>>();
  /** Everything that was ever applied, as `Kind/namespace/name`. */
  readonly applied = new Set<string>();
  #uid = 0;

  /** `publicKey`: base64 of the PEM text of the cluster's key, as the nonce signer tells it. */
  constructor(readonly publicKey = 'a2V5') {}

  get objects(): readonly KubeObject[] {
    return [...this.#objects.values()];
  }

  get names(): readonly string[] {
    return [...this.#objects.keys()].sort();
  }

  put(object: KubeObject, status?: Json): void {
    const at = keyOf(object.kind, refOf(object));
    const before = this.#objects.get(at);
    this.#uid += 1;
    const metadata = { uid: before?.metadata.uid ?? `uid-${this.#uid}`, generation: 1 };
    const next = mergePatched(mergePatched(before, object), { metadata }) as Loose;
    if (status !== undefined) next.status = mergePatched(before?.status, status) as Json;
    if (JSON.stringify(next) === JSON.stringify(before)) return;
    this.#objects.set(at, next);
    this.#tell(object.kind, { after: next });
  }

  #delete(kind: string, ref: ObjectRef): boolean {
    const before = this.#objects.get(keyOf(kind, ref));
    const gone = this.#objects.delete(keyOf(kind, ref));
    this.#appliers.delete(keyOf(kind, ref));
    if (kind === 'Namespace') {
      for (const object of [...this.#objects.values()])
        if (object.metadata.namespace === ref.name) this.#delete(object.kind, refOf(object));
    }
    if (before) this.#tell(kind, { before });
    return gone;
  }

  #tell(kind: string, change: Change<KubeObject>): void {
    for (const listener of [...(this.#listeners.get(kind) ?? [])]) listener(change);
  }

  #cache(type: ResourceType, labelSelector?: string): Cache<KubeObject> {
    const list = () =>
      [...this.#objects.values()].filter(
        (object) => object.kind === type.kind && selects(labelSelector, object.metadata.labels),
      );
    const listeners = this.#listeners.get(type.kind) ?? new Set();
    this.#listeners.set(type.kind, listeners);
    return {
      type,
      list,
      get: (ref) => list().find((object) => keyOf(object.kind, refOf(object)) === keyOf(type.kind, ref)),
      byIndex: () => [],
      synced: async () => undefined,
      isSynced: () => true,
      subscribe: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      ageMs: () => 0,
    };
  }

  /** What the agent's channel is given. */
  get cluster(): Cluster {
    const api = {
      get: async (type: ResourceType, ref: ObjectRef) => this.#objects.get(keyOf(type.kind, ref)),
      list: async (type: ResourceType) => this.#cache(type).list(),
      appliers: async (type: ResourceType, ref: ObjectRef) => [...(this.#appliers.get(keyOf(type.kind, ref)) ?? [])],
      getPath: async () => JSON.stringify({ gitVersion: 'v1.34.4' }),
      apply: async (_type: ResourceType, object: Loose, options: Applying) => {
        const at = keyOf(object.kind, refOf(object));
        if (options.subresource === undefined) this.applied.add(at);
        this.#appliers.set(at, new Set([...(this.#appliers.get(at) ?? []), options.fieldManager]));
        const before = this.#objects.get(at);
        // What its writer no longer says is gone.
        if (options.subresource === 'status' && before !== undefined) {
          const { status: _, ...rest } = before;
          this.#objects.set(at, rest as Loose);
        }
        this.put(object);
        return object;
      },
      mergePatch: async (type: ResourceType, ref: ObjectRef, patch: Json) => {
        const before = this.#objects.get(keyOf(type.kind, ref));
        if (before) this.put({ ...before, ...patch });
        return before;
      },
      delete: async (type: ResourceType, ref: ObjectRef) => this.#delete(type.kind, ref),
    };
    const cache = (type: ResourceType, options: { readonly labelSelector?: string } = {}) =>
      this.#cache(type, options.labelSelector);
    const events = { emit: () => undefined };
    return { api, caches: { cache, scoped: cache, synced: async () => undefined }, events } as unknown as Cluster;
  }

  #of(kind: string): readonly Loose[] {
    return [...this.#objects.values()].filter((object) => object.kind === kind);
  }

  /** One pass of what the controllers of both roles make of the objects of a peering. */
  work(peer: RememberingCluster): void {
    for (const tenant of this.#of('Tenant')) {
      const authParams = { ca: 'Y2E=', signedCRT: 'Y3J0', apiServer: 'https://192.0.2.1:6443' };
      this.put(tenant, { authParams, tenantNamespace: tenant.metadata.namespace });
    }
    for (const identity of this.#of('Identity')) this.put(identity, { kubeconfigSecretRef: { name: 'kubeconfig' } });
    const slices = this.#of('ResourceSlice');
    if (slices.length === 0) {
      for (const node of this.#of('Node')) if (isVirtualNode(node)) this.#delete('Node', refOf(node));
      return;
    }
    for (const secret of this.#of('Secret')) {
      const signed = { signedNonce: 'c2ln', csr: 'Y3Ny', publicKey: this.publicKey };
      this.put({ ...secret, data: { ...secret.data, ...signed } } as Loose);
    }
    if (this.#of('Identity').length === 0 || peer.#of('Tenant').length === 0) return;
    for (const slice of slices) {
      const conditions = ['Authentication', 'Resources'].map((type) => ({ type, status: 'Accepted' }));
      this.put(slice, { conditions, resources: (slice.spec?.resources as Json | undefined) ?? {} });
      const labels = { [label.type]: virtualNodeType, [label.remoteClusterId]: slice.metadata.name };
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: slice.metadata.name, labels } };
      this.put(node, { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready' }] });
    }
  }
}
