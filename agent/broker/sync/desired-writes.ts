/** What the agent writes for the broker, one object at a time; nothing that a broker did not make is taken over or removed. */
import { createHash } from 'node:crypto';
import type { Cluster } from '#kube/model/types.ts';
import { fieldManager, isthmusLabel } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Log } from '#shared/ports/log.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import type { DesiredSet, KubeManifest, ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import { brokerKind } from '../kinds/all.ts';
import { type LiveObject, manifestRef, peerDeadAnnotation, refText } from './plan.ts';
import { appliedHashAnnotation } from './watched-objects.ts';

/** `error`: what the API server answered, where it was asked. */
interface FailedWrite {
  readonly refusal: ObservedSet['refusals'][number];
  readonly error: unknown;
}

export interface DesiredWrites {
  /** Undefined: it was applied. */
  apply(set: DesiredSet, manifest: KubeManifest, signal: AbortSignal): Promise<FailedWrite | undefined>;
  /** An object of this name is there, and no broker applied it: taking it over would let the broker remove it later. */
  isForeign(manifest: KubeManifest, signal: AbortSignal): Promise<boolean>;
  /** False: the object has the label of a peering, no broker applied it, and it stays. */
  remove(object: LiveObject, signal: AbortSignal): Promise<boolean>;
  markPeerDead(set: DesiredSet, signal: AbortSignal): Promise<void>;
}

export function createDesiredWrites({ cluster, log }: { readonly cluster: Cluster; readonly log: Log }): DesiredWrites {
  async function apply(set: DesiredSet, manifest: KubeManifest, signal: AbortSignal): Promise<FailedWrite | undefined> {
    const type = brokerKind(manifest.kind)?.type;
    if (!type) throw new TypeError(`no handle for ${manifest.kind}`);
    const object = {
      ...manifest,
      metadata: {
        ...manifest.metadata,
        labels: { ...manifest.metadata.labels, [isthmusLabel.peering]: set.peering },
        annotations: { ...manifest.metadata.annotations, [appliedHashAnnotation]: manifestHash(manifest) },
      },
    };
    try {
      await cluster.api.apply(
        type,
        object as Parameters<typeof cluster.api.apply>[1],
        { fieldManager: fieldManager.broker },
        signal,
      );
      return undefined;
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      // The API server or an admission webhook refused it: the report has the reason, for the peering's conditions.
      const refusal = {
        object: refText(manifest.kind, manifestRef(manifest)),
        code,
        message: messageOf(error),
      };
      return { refusal, error };
    }
  }

  async function isForeign(manifest: KubeManifest, signal: AbortSignal): Promise<boolean> {
    const type = brokerKind(manifest.kind)?.type;
    if (type === undefined || (await cluster.api.get(type, manifestRef(manifest), signal)) === undefined) return false;
    return !(await cluster.api.appliers(type, manifestRef(manifest), signal)).includes(fieldManager.broker);
  }

  async function remove(object: LiveObject, signal: AbortSignal): Promise<boolean> {
    const kind = brokerKind(object.kind);
    if (kind?.removedBy !== 'agent') return true;
    // A guest that labels an object could have it removed otherwise. What controllers derived from the broker's objects is theirs to give up.
    if (object.peering !== undefined) {
      const appliers = await cluster.api.appliers(kind.type, object.ref, signal);
      if (!appliers.includes(fieldManager.broker)) return false;
    }
    await cluster.api.delete(kind.type, object.ref, { uid: object.uid }, signal);
    return true;
  }

  async function markPeerDead(set: DesiredSet, signal: AbortSignal): Promise<void> {
    const foreign = cluster.caches
      .cache(foreignClusters)
      .list()
      .find((fc) => fc.spec.clusterID === set.peer);
    if (!foreign || foreign.metadata.annotations?.[peerDeadAnnotation] === 'true') return;
    log.warn('the peer is declared unreachable for good, nothing waits for it any more', {
      peering: set.peering,
      peer: set.peer,
    });
    await cluster.api.mergePatch(
      foreignClusters,
      { name: foreign.metadata.name },
      { metadata: { annotations: { [peerDeadAnnotation]: 'true' } } },
      {},
      signal,
    );
  }

  return { apply, isForeign, remove, markPeerDead };
}

/** Of an object that `isForeign`. */
export function foreignObject(manifest: KubeManifest): FailedWrite {
  const object = refText(manifest.kind, manifestRef(manifest));
  const message = `${object} exists in this cluster and was not made by a broker; a broker takes over nothing that it did not make`;
  return { refusal: { object, code: 'object_not_allowed', message }, error: undefined };
}

export const manifestHash = (manifest: KubeManifest): string =>
  createHash('sha256').update(stable(manifest)).digest('hex').slice(0, 32);

/** JSON with sorted keys: the same manifest gives the same text in any order of its members. */
const stable = (value: unknown): string =>
  JSON.stringify(value, (_key, v: unknown) =>
    typeof v === 'object' && v !== null && !Array.isArray(v)
      ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)))
      : v,
  );
