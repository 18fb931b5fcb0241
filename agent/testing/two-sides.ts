/** Both clusters of one offloaded namespace, remembered. It keeps the API server's rules that matter here (uids, preconditions, names). */
import type { JsonOperation } from '#agent/offloading/consumer/pods/mutable-spec.ts';
import { mergePatched } from '#kube/http/testing/merge-patched.ts';
import type { KubeApi } from '#kube/model/types.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { jsonPatched } from './patched.ts';

export class TwoSides {
  readonly pods = new Map<string, Pod>();
  readonly shadows = new Map<string, ShadowPod>();
  readonly remotes = new Map<string, Pod>();
  writes = 0;
  #serial = 0;

  uid(): string {
    this.#serial++;
    return `uid-${this.#serial}`;
  }

  createPod(name: string, image: string): void {
    if (this.pods.has(name)) return;
    this.pods.set(name, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'demo', uid: this.uid(), labels: { app: name } },
      spec: { nodeName: 'vn1', containers: [{ name: 'app', image }] },
      status: { phase: 'Pending' },
    } as Pod);
  }

  deletePod(name: string): void {
    this.#change(this.pods, name, (pod) => {
      pod.metadata.deletionTimestamp ??= '2026-01-01T00:00:00Z';
    });
  }

  edit(name: string, image: string): void {
    this.#change(this.pods, name, (pod) => {
      pod.metadata.labels = { ...pod.metadata.labels, tier: image };
      if (pod.spec?.containers[0]) pod.spec.containers[0].image = image;
    });
  }

  #change<T extends { metadata: object }>(map: Map<string, T>, name: string, edit: (object: T) => void): void {
    const found = map.get(name);
    if (!found) return;
    const next = structuredClone(found);
    edit(next);
    map.set(name, next);
  }

  /** One look of the provider's controller, garbage collector and kubelet at one name. */
  providerLooks(name: string): void {
    const shadow = this.shadows.get(name);
    const remote = this.remotes.get(name);
    const owner = remote?.metadata.ownerReferences?.[0]?.uid;
    if (remote && owner !== shadow?.metadata.uid) {
      this.remotes.delete(name);
      return;
    }
    const ended = shadow?.status?.phase === 'Succeeded' || shadow?.status?.phase === 'Failed';
    if (shadow && !remote && !ended) this.remotes.set(name, this.#remoteOf(shadow));
    if (shadow && remote) {
      const phase = remote.status?.phase as NonNullable<ShadowPod['status']>['phase'];
      this.shadows.set(name, { ...shadow, status: { phase } });
    }
  }

  #remoteOf(shadow: ShadowPod): Pod {
    const { name, labels, annotations, uid = '' } = shadow.metadata;
    const metadata = {
      name,
      namespace: 'demo-cons',
      uid: this.uid(),
      labels: { ...labels },
      annotations: { ...annotations },
    };
    const owner = { apiVersion: 'offloading.liqo.io/v1beta1', kind: 'ShadowPod', name, uid, controller: true };
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, ownerReferences: [owner] },
      status: { phase: 'Pending' },
    } as Pod;
  }

  /** The remote kubelet reports. */
  reports(name: string, phase: 'Running' | 'Succeeded' | 'Failed', restartCount: number): void {
    this.#change(this.remotes, name, (pod) => {
      if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') return;
      const ready = phase === 'Running' ? 'True' : 'False';
      pod.status = {
        phase,
        podIP: '10.0.0.9',
        conditions: [{ type: 'Ready', status: ready, lastTransitionTime: '2026-01-01T00:00:01Z' }],
        containerStatuses: [{ name: 'app', ready: phase === 'Running', restartCount, image: 'i', imageID: 'i' }],
      } as NonNullable<Pod['status']>;
    });
  }

  readonly local = this.#api(this.pods as Map<string, never>);
  readonly peer: KubeApi = {
    ...this.#api(this.shadows as Map<string, never>),
    get: (async ({ kind }: { kind: string }, { name }: { name: string }) =>
      (kind === 'Pod' ? this.remotes : this.shadows).get(name)) as never,
  };

  #api<T extends { metadata: { name: string; uid?: string } }>(map: Map<string, T>): KubeApi {
    const found = (name: string): T => {
      const object = map.get(name);
      if (!object) throw new AppError('kube_not_found', `${name} is not there`, { detail: { name } });
      return object;
    };
    const put = (name: string, object: T): T => {
      if (JSON.stringify(object) !== JSON.stringify(map.get(name))) this.writes++;
      map.set(name, object);
      return object;
    };
    return {
      get: async (_: unknown, { name }: { name: string }) => map.get(name),
      create: async (_: unknown, object: T) => {
        const { name } = object.metadata;
        if (map.has(name)) throw new AppError('kube_already_exists', `${name} exists`);
        return put(name, { ...structuredClone(object), metadata: { ...object.metadata, uid: this.uid() } });
      },
      mergePatch: async (_: unknown, { name }: { name: string }, patch: { metadata?: { uid?: string } }) => {
        const object = found(name);
        if (patch.metadata?.uid !== undefined && patch.metadata.uid !== object.metadata.uid) {
          throw new AppError('kube_conflict', 'the uid differs');
        }
        return put(name, mergePatched(object, patch) as T);
      },
      jsonPatch: async (_: unknown, { name }: { name: string }, patch: readonly JsonOperation[]) =>
        put(name, jsonPatched(found(name), patch)),
      delete: async (_: unknown, { name }: { name: string }, options: { uid?: string } = {}) => {
        const object = map.get(name);
        if (!object || (options.uid !== undefined && options.uid !== object.metadata.uid)) return false;
        this.writes++;
        map.delete(name);
        return true;
      },
    } as unknown as KubeApi;
  }
}
