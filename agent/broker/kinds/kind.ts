/** What the agent needs to know about one kind at the border between broker and cluster. Each kind has one file; `all.ts` lists them. */
import type { Cache, CacheOptions, Caches } from '#kube/model/types.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { isthmusLabel, label } from '#shared/domain/liqo-keys.ts';
import type { DesiredSet, KubeManifest, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { ObservedData, ObservedKind } from '#shared/schema/protocol/observed-data.ts';

export type Json = Record<string, unknown>;
export type AnyObject = KubeObject & { spec?: Json; status?: Json; data?: Json };

/** The part of a desired set by which the objects of its peering are found. */
export type PeeringKey = Pick<DesiredSet, 'peering' | 'role' | 'peer' | 'state'>;

/** What a manifest from the broker may contain. The agent refuses a manifest that contains anything else. */
export interface Accepted {
  readonly roles: readonly PeeringRole[];
  readonly names: (set: Pick<DesiredSet, 'role' | 'peer'>) => readonly string[];
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
  /** Top-level members besides apiVersion, kind and metadata, each with the fields it may hold. */
  readonly members: Readonly<Record<string, readonly string[]>>;
  /** What is wrong with the values; undefined: nothing. `self` is this cluster's ID. */
  readonly check?: (manifest: KubeManifest, set: DesiredSet, self: string) => string | undefined;
}

/**
 * The order in which a side is taken down; a stage starts when the one before is gone. The consumer gives its capacity back before its identity
 * goes; the provider takes the consumer's rights first, so that nothing comes back while it cleans.
 */
export const takedownStages = {
  consumer: ['capacity', 'identity', 'link', 'namespace'],
  provider: ['rights', 'capacity', 'link', 'namespace'],
} as const;
type Stages = typeof takedownStages;

/** Values are as the cluster has them; `readData` makes them what the schema says. */
export type Selected<K extends ObservedKind> = { readonly [F in keyof ObservedData<K>]: unknown };

export interface BrokerKind<K extends ObservedKind = ObservedKind> {
  /** Objects of a namespaced kind are in the tenant namespace of the peer and nowhere else. */
  readonly type: ResourceType;
  /** Absent: the broker may not apply this kind; controllers make its objects. */
  readonly accepted?: Accepted;
  /** The list-watches in which objects of peerings appear. */
  readonly caches: (caches: Caches) => readonly Cache<KubeObject>[];
  /** Whether `object`, which does not have the label of the peering, belongs to it all the same: a controller made it for this peer. */
  readonly isDerived: (object: KubeObject, set: PeeringKey) => boolean;
  /** The fields that the broker may know: never a private key, token or kubeconfig. */
  readonly observed: (object: AnyObject) => Selected<K>;
  /** Observed fields that always change a little, each with that part of the value whose change is reported at once. */
  readonly volatile?: { readonly [F in keyof ObservedData<K>]?: (value: unknown) => unknown };
  /** The stage in which objects go, for each role. No stage: the plan only waits until they are gone. */
  readonly takedown: { readonly [R in PeeringRole]?: Stages[R][number] };
  /** `controllers`: the stage waits for these objects, and the agent does not delete them. */
  readonly removedBy: 'agent' | 'controllers';
  /** Deleting an object of this kind, with kubectl, liqoctl or from Git, ends the peering. */
  readonly carriesPeering?: true;
  /**
   * The tenant namespace, in which all others are. Opposite peerings share it: the label of the peering that made it stays, nothing is applied
   * while it terminates, and its annotation says which peering was ended in this cluster.
   */
  readonly isHome?: true;
  /** Present: part of a link, which `spec.network` of a PeeringPolicy is about. Returns the ranges that the peer announces in this manifest. */
  readonly announcedRanges?: (manifest: KubeManifest) => readonly string[];
  /** Objects of other kinds that controllers derive from an accepted manifest of this kind; a set that wants the one wants the others. */
  readonly brings?: (manifest: KubeManifest) => readonly { readonly kind: string; readonly name: string }[];
}

export const bothRoles: readonly PeeringRole[] = ['consumer', 'provider'];
export const peeringLabels: readonly string[] = [label.remoteClusterId, isthmusLabel.peering];

/** One list-watch of `type` for each of `selections`; without any, one of all its objects. */
export const watched =
  <T extends KubeObject>(type: ResourceType<T>, ...selections: readonly CacheOptions<T>[]): BrokerKind['caches'] =>
  (caches) =>
    (selections.length === 0 ? [caches.cache(type)] : selections.map((selection) => caches.cache(type, selection))).map(
      (cache) => cache as unknown as Cache<KubeObject>,
    );
