/** What one replicated NamespaceMap makes of the namespaces of this provider: create, delete, bind, and what to report. Pure. */

import type { AccountSubject } from '#agent/model/peer-accounts.ts';
import type { Namespace, RoleBinding } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { remoteNamespaceProblem } from '#shared/domain/system-namespaces.ts';
import type { NamespaceMapPhase, RemoteNamespaceStatus } from '#shared/schema/liqo/namespace-map.ts';
import type { GuestRules } from '../guests/decide.ts';
import { guestNameProblem } from './names.ts';
import { isIntact } from './objects.ts';

export interface Observed {
  /** `<tenant namespace>/<name>` of the map: what our namespaces carry. */
  readonly mapKey: string;
  readonly origin: string;
  readonly tenantNamespace: string;
  /** Of its slices, of which it holds tokens. */
  readonly accounts?: readonly AccountSubject[];
  readonly deleting: boolean;
  readonly desired: Readonly<Record<string, string>>;
  /** Namespaces that carry this map's key, and those that have a desired name. */
  readonly namespaces: ReadonlyMap<string, Namespace>;
  readonly bindings: ReadonlyMap<string, RoleBinding>;
  /** Namespaces that other maps of this consumer have: it may write as many maps as it likes. */
  readonly ofOtherMaps: number;
  readonly rules: Pick<GuestRules, 'namespaces' | 'maxNamespaces'>;
  /** Names whose creation the API server refused in the last pass. */
  readonly refused?: ReadonlySet<string>;
}

interface Creation {
  readonly remote: string;
  readonly local: string;
}

export interface Decision {
  readonly create: readonly Creation[];
  /** By name and UID, so that a namespace recreated in between is not deleted. */
  readonly remove: readonly { readonly remote: string; readonly uid: string }[];
  /** Namespaces whose RoleBinding is missing or not as we made it. */
  readonly bind: readonly string[];
  readonly current: Readonly<Record<string, RemoteNamespaceStatus>>;
  /** Why entries are in CreationLoopBackOff, by local namespace. */
  readonly problems: Readonly<Record<string, string>>;
  /**
   * Nothing of ours will stay: the finalizer of a deleted map may go. The API server finishes a deleted namespace by itself, but takes 5 s to begin:
   * a caller that needs the namespaces gone must check for them.
   */
  readonly clean: boolean;
}

const ownerOf = ({ metadata }: Namespace): string | undefined =>
  metadata.annotations?.[annotation.managedByNamespaceMap];
const localOf = ({ metadata }: Namespace): string | undefined => metadata.annotations?.[annotation.originalName];

interface Verdict {
  readonly phase: NamespaceMapPhase;
  readonly why?: string;
  readonly create?: boolean;
}

export function decide(observed: Observed): Decision {
  const { mapKey, namespaces } = observed;
  const desired = observed.deleting ? {} : observed.desired;
  const current: Record<string, RemoteNamespaceStatus> = {};
  const problems: Record<string, string> = {};
  const create: Creation[] = [];
  const bind: string[] = [];

  const ours = [...namespaces.values()].filter((ns) => ownerOf(ns) === mapKey);
  const { maxNamespaces } = observed.rules;
  for (const local of Object.keys(desired).sort()) {
    const remote = desired[local] ?? '';
    const wanted = judge(observed, local, remote);
    const isFull = wanted.create && observed.ofOtherMaps + ours.length + create.length >= maxNamespaces;
    const verdict = isFull
      ? failed(
          `there are ${maxNamespaces} namespaces of this consumer, the most that the provider accepts (guests.maxNamespaces)`,
        )
      : wanted;
    current[local] = { remoteNamespace: remote, phase: verdict.phase };
    if (verdict.why !== undefined) problems[local] = verdict.why;
    if (verdict.create) create.push({ remote, local });
    if (verdict.phase === 'Accepted' && !isIntact(observed.bindings.get(remote), observed)) bind.push(remote);
  }

  const surplus = ours.filter((ns) => ownMember(desired, localOf(ns) ?? '') !== ns.metadata.name);
  for (const ns of surplus) {
    const local = localOf(ns) ?? ns.metadata.name;
    // The old namespace of an entry that was renamed goes silently: the entry tells about its new name.
    if (!Object.hasOwn(current, local)) current[local] = { remoteNamespace: ns.metadata.name, phase: 'Terminating' };
  }
  const remove = surplus
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .map(({ metadata }) => ({ remote: metadata.name, uid: metadata.uid ?? '' }));
  return { create, remove, bind, current, problems, clean: ours.every(({ metadata }) => metadata.deletionTimestamp) };
}

const failed = (why: string): Verdict => ({ phase: 'CreationLoopBackOff', why });

function judge(observed: Observed, local: string, remote: string): Verdict {
  const { mapKey, namespaces, refused, origin, rules } = observed;
  const problem = remoteNamespaceProblem(remote);
  if (problem !== undefined) return failed(`the wanted name ${problem}`);
  const holder = holderOf(observed, remote);
  if (holder !== undefined && holder !== local)
    return failed(`namespace ${remote} is that of ${holder} of the same consumer`);
  const existing = namespaces.get(remote);
  if (!existing) {
    const unfit = guestNameProblem(remote, origin, rules.namespaces);
    if (unfit !== undefined) return failed(`the wanted name ${unfit}`);
    if (refused?.has(remote)) return failed(`the API server refused to create namespace ${remote}`);
    return { phase: 'Accepted', create: true };
  }
  if (ownerOf(existing) !== mapKey) return failed(`namespace ${remote} exists here and is not of this consumer`);
  if (label.tenantNamespace in (existing.metadata.labels ?? {}))
    return failed(`namespace ${remote} is a tenant namespace`);
  if (existing.metadata.deletionTimestamp) return { phase: 'Terminating' };
  return { phase: 'Accepted' };
}

/** Of several local namespaces that want one name: the one that has it, else the first by name. */
function holderOf({ desired, namespaces, mapKey }: Observed, remote: string): string | undefined {
  const existing = namespaces.get(remote);
  const holder = existing && ownerOf(existing) === mapKey ? localOf(existing) : undefined;
  if (holder !== undefined) return holder;
  return Object.keys(desired)
    .filter((local) => desired[local] === remote)
    .sort()[0];
}
