/** What to write and what to remove so that a cluster matches one desired set. Pure: no client, no clock. */
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import { annotation } from '#shared/domain/liqo-keys.ts';
import { nameList } from '#shared/domain/name-list.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { brokerKind } from '../kinds/all.ts';
import { tenantNamespaceOf } from '../kinds/derived.ts';
import { takedownStages } from '../kinds/kind.ts';

/** One object of a peering as it is: what the broker had applied, or what controllers derived from that. */
export interface LiveObject {
  readonly kind: string;
  readonly ref: ObjectRef;
  readonly uid: string;
  readonly deleting: boolean;
  /** The peering that applied it; undefined for derived objects. */
  readonly peering?: string;
  /** Of the manifest it was last applied from. */
  readonly appliedHash?: string;
  /** On a tenant namespace: the peering that was ended in this cluster. */
  readonly ended?: string;
}

export interface PlanInput {
  readonly set: DesiredSet;
  readonly live: readonly LiveObject[];
  /** `Kind/namespace/name` of everything that other present sets of this cluster want: two opposite peerings share a namespace. */
  readonly wantedElsewhere: ReadonlySet<string>;
  /** Of those, what a set with a later revision wants: it alone writes. */
  readonly leftToOthers?: ReadonlySet<string>;
  /** `Kind/namespace/name` of what this cluster refuses to apply. Refused is not unwanted: what exists already stays. */
  readonly refused: ReadonlySet<string>;
  readonly hashOf: (manifest: KubeManifest) => string;
}

export interface Plan {
  /** In order. */
  readonly apply: readonly KubeManifest[];
  readonly remove: readonly LiveObject[];
  /** Mark the peer's ForeignCluster so that no controller waits for it. */
  readonly markPeerDead: boolean;
  /** Undefined: the cluster matches once `apply` and `remove` are done. */
  readonly waitingOn?: string;
  /** Nothing of this peering is left. Only for absent sets. */
  readonly clean: boolean;
}

export const refText = (kind: string, ref: ObjectRef): string => `${kind}/${ref.namespace ?? ''}/${ref.name}`;
export const manifestRef = (m: KubeManifest): ObjectRef =>
  m.metadata.namespace === undefined
    ? { name: m.metadata.name }
    : { namespace: m.metadata.namespace, name: m.metadata.name };

const isHome = (kind: string): boolean => brokerKind(kind)?.isHome === true;

const wantedBy = ({ objects }: DesiredSet): ReadonlySet<string> =>
  new Set(objects.map((m) => refText(m.kind, manifestRef(m))));

/** Whether a user of this cluster ended what the broker still wants. The agent itself deletes nothing that is wanted. */
export function isEndedHere(set: DesiredSet, live: readonly LiveObject[]): boolean {
  if (set.state !== 'present') return false;
  const wanted = wantedBy(set);
  return (
    live.some(({ ended }) => ended === set.peering) ||
    carriersOf(set, live).some(({ kind, ref, deleting }) => deleting && wanted.has(refText(kind, ref)))
  );
}

/** The objects in this cluster whose deletion ends the peering. */
export const carriersOf = (set: Pick<DesiredSet, 'peering'>, live: readonly LiveObject[]): readonly LiveObject[] =>
  live.filter(({ kind, peering }) => brokerKind(kind)?.carriesPeering && peering === set.peering);

/**
 * Of the objects that carried the peering before, one that the broker still wants and that is gone: kinds without a finalizer vanish at once.
 * Undefined where the tenant namespace is gone as well: then no user ended the peering but the cluster lost its state, and all objects are made
 * again.
 */
export function vanished(
  set: DesiredSet,
  live: readonly LiveObject[],
  before: readonly LiveObject[],
): LiveObject | undefined {
  const home = live.some(({ kind, ref, deleting }) => isHome(kind) && ref.name === tenantNamespaceOf(set) && !deleting);
  if (set.state !== 'present' || !home) return undefined;
  const wanted = wantedBy(set);
  const here = new Set(live.map(({ kind, ref }) => refText(kind, ref)));
  return before.find(({ kind, ref }) => wanted.has(refText(kind, ref)) && !here.has(refText(kind, ref)));
}

export function planSet(input: PlanInput): Plan {
  return input.set.state === 'present' ? planPresent(input) : planAbsent(input);
}

function planPresent({ set, live, wantedElsewhere, leftToOthers, refused, hashOf }: PlanInput): Plan {
  const byRef = new Map(live.map((o) => [refText(o.kind, o.ref), o]));
  const wanted = wantedBy(set);
  const terminating = live.find((o) => isHome(o.kind) && o.deleting && wanted.has(refText(o.kind, o.ref)));
  const remove = live.filter(
    (o) =>
      o.peering === set.peering &&
      !o.deleting &&
      !wanted.has(refText(o.kind, o.ref)) &&
      !wantedElsewhere.has(refText(o.kind, o.ref)),
  );
  if (terminating) {
    return {
      apply: [],
      remove,
      markPeerDead: false,
      clean: false,
      waitingOn: `namespace ${terminating.ref.name} is still being deleted`,
    };
  }
  const apply = set.objects.filter((m) => {
    const ref = refText(m.kind, manifestRef(m));
    if (refused.has(ref) || leftToOthers?.has(ref)) return false;
    const now = byRef.get(ref);
    const theirs = now?.peering !== undefined && now.peering !== set.peering;
    // An object that an ended peering left behind gets the label of this peering, by which it is found when this one ends.
    if (!isHome(m.kind) && theirs && !wantedElsewhere.has(ref)) return true;
    return !now || (now.appliedHash !== hashOf(m) && !(isHome(m.kind) && theirs));
  });
  const held = apply.map((m) => byRef.get(refText(m.kind, manifestRef(m)))).find((o) => o?.deleting);
  if (held) {
    return {
      apply: apply.filter((m) => !byRef.get(refText(m.kind, manifestRef(m)))?.deleting),
      remove,
      markPeerDead: false,
      clean: false,
      waitingOn: `${held.kind} ${held.ref.name} of an earlier peering is still being deleted`,
    };
  }
  return { apply, remove, markPeerDead: false, clean: false };
}

function planAbsent({ set, live, wantedElsewhere }: PlanInput): Plan {
  // In a tenant namespace that no broker made there is a peering by other means: its objects are not the broker's to remove.
  const isHandMade = live.some(
    (o) => isHome(o.kind) && o.ref.name === tenantNamespaceOf(set) && o.peering === undefined,
  );
  const left = live.filter(
    (o) => !wantedElsewhere.has(refText(o.kind, o.ref)) && !(isHandMade && o.peering === undefined),
  );
  if (left.length === 0) return { apply: [], remove: [], markPeerDead: false, clean: true };
  // A broker may say so of any cluster. What hangs on the word is what a broker made, in a namespace that a broker made.
  const markPeerDead =
    set.peerDead &&
    live.some((o) => isHome(o.kind) && o.ref.name === tenantNamespaceOf(set) && o.peering !== undefined);
  for (const stage of takedownStages[set.role]) {
    const here = left.filter((o) => brokerKind(o.kind)?.takedown[set.role] === stage);
    if (here.length === 0) continue;
    return {
      apply: [],
      remove: here.filter((o) => brokerKind(o.kind)?.removedBy === 'agent' && !o.deleting),
      markPeerDead,
      clean: false,
      waitingOn: `removal of ${nameList(here.map((o) => `${o.kind} ${o.ref.name}`))}`,
    };
  }
  return {
    apply: [],
    remove: [],
    markPeerDead,
    clean: false,
    waitingOn: `removal of ${nameList(left.map((o) => `${o.kind} ${o.ref.name}`))}`,
  };
}

/** The objects that controllers derive from a manifest: a set that wants the manifest wants them, too. */
export const derivedRefs = (manifest: KubeManifest): readonly string[] =>
  (brokerKind(manifest.kind)?.brings?.(manifest) ?? []).map(({ kind, name }) =>
    refText(kind, { namespace: manifest.metadata.namespace ?? '', name }),
  );

export const peerDeadAnnotation = annotation.permanentlyUnreachable;
