/** What to write and what to remove so that a cluster matches one desired set. Pure: no client, no clock. */
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import { annotation, label, name } from '#shared/domain/liqo-keys.ts';
import { nameList } from '#shared/domain/name-list.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import type { DesiredSet, KubeManifest, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';

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
  /** On a tenant namespace: the peering that somebody ended here. */
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

/**
 * The order in which a side is taken down; a stage starts when the one before is gone. Kinds absent from every stage are derived: their
 * owners remove them, and the plan only waits. The consumer gives its capacity back before its identity goes; the provider takes
 * the consumer's rights first, so that nothing comes back while it cleans.
 */
const link = ['GatewayServer', 'GatewayClient', 'PublicKey', 'Connection', 'Configuration'] as const;
const takedown: Record<PeeringRole, readonly (readonly string[])[]> = {
  consumer: [['ResourceSlice'], ['NamespaceMap', 'Identity'], link, ['Secret', 'Namespace']],
  provider: [['Tenant'], ['ResourceSlice', 'NamespaceMap'], link, ['Secret', 'Namespace']],
};
/** What the first stages wait for besides their own kinds. */
const derivedBy: Record<string, readonly string[]> = { ResourceSlice: ['VirtualNode', 'Node'] };

/** What carries a peering. Whoever deletes one of these ends it, with kubectl, liqoctl or from Git. */
const carriers: ReadonlySet<string> = new Set(['ResourceSlice', 'Identity', 'Tenant']);

const wantedBy = ({ objects }: DesiredSet): ReadonlySet<string> =>
  new Set(objects.map((m) => refText(m.kind, manifestRef(m))));

/** Whether somebody in this cluster ended what the broker still wants. The agent itself deletes nothing that is wanted. */
export function isEndedHere(set: DesiredSet, live: readonly LiveObject[]): boolean {
  if (set.state !== 'present') return false;
  const wanted = wantedBy(set);
  return (
    live.some(({ ended }) => ended === set.peering) ||
    carriersOf(set, live).some(({ kind, ref, deleting }) => deleting && wanted.has(refText(kind, ref)))
  );
}

/** What carries the peering in this cluster now. */
export const carriersOf = (set: Pick<DesiredSet, 'peering'>, live: readonly LiveObject[]): readonly LiveObject[] =>
  live.filter(({ kind, peering }) => carriers.has(kind) && peering === set.peering);

/**
 * Of what carried the peering before, one that the broker still wants and that is gone: kinds without a finalizer vanish at once. Where the tenant
 * namespace is gone as well nobody ended anything: the cluster lost its memory, and everything is made again.
 */
export function vanished(
  set: DesiredSet,
  live: readonly LiveObject[],
  before: readonly LiveObject[],
): LiveObject | undefined {
  const home = live.some(
    ({ kind, ref, deleting }) => kind === 'Namespace' && ref.name === tenantNamespaceOf(set) && !deleting,
  );
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
  const terminating = live.find((o) => o.kind === 'Namespace' && o.deleting && wanted.has(refText(o.kind, o.ref)));
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
    // What an ended peering has left to this one gets its name: this one's end must find it.
    if (m.kind !== 'Namespace' && theirs && !wantedElsewhere.has(ref)) return true;
    return !now || (now.appliedHash !== hashOf(m) && !(m.kind === 'Namespace' && theirs));
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
  const left = live.filter((o) => !wantedElsewhere.has(refText(o.kind, o.ref)));
  if (left.length === 0) return { apply: [], remove: [], markPeerDead: false, clean: true };
  for (const stage of takedown[set.role]) {
    const kinds = new Set(stage.flatMap((kind) => [kind, ...(derivedBy[kind] ?? [])]));
    const here = left.filter((o) => kinds.has(o.kind));
    if (here.length === 0) continue;
    return {
      apply: [],
      remove: here.filter((o) => stage.includes(o.kind) && !o.deleting),
      markPeerDead: set.peerDead,
      clean: false,
      waitingOn: `removal of ${nameList(here.map((o) => `${o.kind} ${o.ref.name}`))}`,
    };
  }
  return {
    apply: [],
    remove: [],
    markPeerDead: set.peerDead,
    clean: false,
    waitingOn: `removal of ${nameList(left.map((o) => `${o.kind} ${o.ref.name}`))}`,
  };
}

/** Where the objects of a peering live in this cluster. */
export const tenantNamespaceOf = (set: Pick<DesiredSet, 'peer'>): string => name.tenantNamespace(set.peer);

/** What a gateway that this cluster is asked for brings with it: whoever wants the one wants the other. */
export function derivedFromGateway({ kind, metadata }: KubeManifest): readonly string[] {
  if (kind !== 'GatewayServer' && kind !== 'GatewayClient') return [];
  const ref = { namespace: metadata.namespace ?? '', name: networkName.gateway(metadata.name) };
  return ['Connection', 'Secret'].map((derived) => refText(derived, ref));
}

/** The labels that prove that a derived object belongs to this peering and this role. */
export const derivedLabels = (set: Pick<DesiredSet, 'peer' | 'role'>): Readonly<Record<string, string>> =>
  set.role === 'consumer'
    ? { [label.replication]: 'true', [label.remoteId]: set.peer }
    : { [label.replicated]: 'true', [label.originId]: set.peer };

export const peerDeadAnnotation = annotation.permanentlyUnreachable;
