/**
 * Peerings whose two clusters are of two tenants. What the state machine knows is one shared item; each tenant reads its own copy of it,
 * which holds what docs/cross-tenant.md lists and nothing else. The copies are written by the transaction that changes the shared item.
 */
import { sameJson } from '#shared/domain/json-equality.ts';
import { noNodeReadyReason } from '#shared/domain/liqo-keys.ts';
import { tryParseQuantity } from '#shared/domain/quantity.ts';
import type { PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { endingLabelOps } from '../../labels/label-index.ts';
import { countOps } from '../../limits/capacity.ts';
import type { Link, LinkEnd } from '../../model/link.ts';
import type { PeeringCondition, Resources } from '../../model/peering.ts';
import type { PeeringRecord, PeeringSpec, PeeringState } from '../../model/peering-records.ts';
import type { Item, Key, Op, Store } from '../../ports/store.ts';
import { key } from '../../store/keys.ts';
import { isPlainEndpoint } from '../core/endpoint.ts';
import { otherRole, roles } from '../core/roles.ts';

type Placed = Pick<PeeringSpec, 'id' | 'across'>;

/** Where the truth about a peering is. */
export const homeOf = (tenant: string, { id, across }: Placed): Key =>
  across ? key.sharedPeering(across.provider, across.consumer, id) : key.peering(tenant, id);

export const tenantOf = (tenant: string, { across }: Placed, role: PeeringRole): string => across?.[role] ?? tenant;

/** Every tenant that hears of it. */
export const tenantsOf = (tenant: string, { across }: Placed): readonly string[] =>
  across ? [across.provider, across.consumer] : [tenant];

/** Which side a tenant is; undefined when the peering is within it. */
export const sideOf = (tenant: string, { across }: Placed): PeeringRole | undefined =>
  across && (across.consumer === tenant ? 'consumer' : 'provider');

/** Words that a condition about the other side may carry to this one. Anything else became `Other`. */
const tellable = new Set([
  'Yes',
  'GivenBefore',
  'PolicyRefuses',
  'WaitingForConsent',
  'Withdrawn',
  'Lapsed',
  'NotHeard',
  'ClusterLeft',
  'Refused',
  'Denied',
  'WaitingForSignature',
  'WaitingForCertificate',
  'WaitingForKubeconfig',
  'WaitingForNetwork',
  'WaitingForGrant',
  noNodeReadyReason,
  'Linked',
  'NotCapable',
  'WaitingForRanges',
  'WaitingForConfiguration',
  'WaitingForEndpoint',
  'WaitingForKey',
  'Connecting',
  'LinkDown',
  'NoNode',
  'NotReady',
  'Clean',
  'WaitingForConsumer',
  'LeftBehind',
  'Removing',
  'RemovingAlone',
]);

/** Whose report a condition's words come from. The provider's answer to a ResourceSlice is reported by the consumer, in whose cluster it stands. */
const authorOf = ({ reason, side }: PeeringCondition): PeeringCondition['side'] =>
  reason === 'Denied' || reason === noNodeReadyReason ? 'consumer' : side;

/** A condition in words of the other side, as this side may read it: what kind of thing is missing since when, in fixed words. */
function tell(condition: PeeringCondition, side: PeeringRole, spec: PeeringSpec): PeeringCondition {
  const { across } = spec;
  const author = authorOf(condition);
  if (!across || author === side || author === 'both') return condition;
  const where = condition.side === 'both' ? author : condition.side;
  const reason = tellable.has(condition.reason) ? condition.reason : 'Other';
  const holds = condition.status === 'True';
  const remedy = where === side ? `look into ${spec[side]}` : `if this lasts, ask tenant ${across[where]}`;
  return {
    ...condition,
    reason,
    message: `${condition.type} ${holds ? 'holds' : 'does not hold yet'} at ${spec[where]} of tenant ${across[where]} (${reason})`,
    action: holds ? '' : remedy,
  };
}

/** Reported by the consumer: quantities, and no other words. */
const quantitiesOf = (granted: Resources): Resources =>
  Object.fromEntries(
    Object.entries(granted).filter(
      ([name, value]) => /^[-A-Za-z0-9_./]{1,253}$/.test(name) && tryParseQuantity(value) !== undefined,
    ),
  );

/** What is left behind begins with the name of its cluster. */
function leftFor({ leftBehind }: PeeringState, side: PeeringRole, spec: PeeringSpec): readonly string[] {
  const other = spec[otherRole(side)];
  return leftBehind.map((line) => (line.startsWith(`${other}: `) ? `${other}: not confirmed` : line));
}

/** The layout, and of the other side no more than how it is doing and the address at which it is dialled anyway. */
function linkFor(link: Link, side: PeeringRole): Link {
  const other = otherRole(side);
  const own = ({ candidates, connection }: LinkEnd): LinkEnd => ({
    candidates,
    ...(connection ? { connection } : {}),
  });
  const theirs = ({ candidates, connection }: LinkEnd): LinkEnd => ({
    candidates: candidates.slice(0, 1).filter(isPlainEndpoint),
    ...(connection ? { connection: { value: connection.value, reportedAt: connection.reportedAt } } : {}),
  });
  return { ...link, [side]: own(link[side]), [other]: theirs(link[other]) };
}

/** One tenant's copy. Everything that is not named here stays out of it. */
/** What was wrong in the other tenant's cluster is in its own copy. */
function warningsFor({ warnings = [] }: PeeringState, side: PeeringRole): Pick<PeeringState, 'warnings'> {
  const own = warnings.filter((warning) => warning.side === side);
  return own.length === 0 ? {} : { warnings: own };
}

export function copyFor({ spec, state }: PeeringRecord, side: PeeringRole): PeeringRecord {
  const { id, consumer, provider, resources, createdAt, across, unpeerRequestedAt, unpeerRequestedBy } = spec;
  return {
    spec: {
      id,
      consumer,
      provider,
      resources,
      class: spec.class,
      ...(spec.network ? { network: spec.network } : {}),
      nonce: '',
      createdAt,
      requestedBy: side === 'consumer' || !across ? spec.requestedBy : `tenant/${across.consumer}`,
      ...(across ? { across } : {}),
      ...(unpeerRequestedAt === undefined ? {} : { unpeerRequestedAt }),
      ...(unpeerRequestedBy === undefined ? {} : { unpeerRequestedBy }),
    },
    state: {
      phase: state.phase,
      conditions: state.conditions.map((condition) => tell(condition, side, spec)),
      phaseSince: state.phaseSince,
      leftBehind: leftFor(state, side, spec),
      ...warningsFor(state, side),
      ...(state.consentedAt === undefined ? {} : { consentedAt: state.consentedAt }),
      ...(state.granted ? { granted: quantitiesOf(state.granted) } : {}),
      ...(state.link ? { link: linkFor(state.link, side) } : {}),
      ...(state.removal ? { removal: state.removal } : {}),
    },
  };
}

export type Copies = Readonly<Partial<Record<PeeringRole, Item<PeeringRecord>>>>;

/** Both tenants' copies, with the versions to write them at. Only for a peering across tenants. */
export async function loadCopies(store: Store, { id, across }: Placed, signal?: AbortSignal): Promise<Copies> {
  if (!across) return {};
  const [consumer, provider] = await Promise.all(
    roles.map((role) => {
      const { pk, sk } = key.peering(across[role], id);
      return store.get<PeeringRecord>(pk, sk, signal);
    }),
  );
  return { ...(consumer ? { consumer } : {}), ...(provider ? { provider } : {}) };
}

/** What a tenant wrote into its own copy stays there. */
function withOwn({ spec, state }: PeeringRecord, { spec: { labels } }: PeeringRecord): PeeringRecord {
  return { spec: { ...spec, ...(labels ? { labels } : {}) }, state };
}

/** Brings the copies to `record`; with `expiresAt`, gives them their end. A copy that its tenant no longer has is not made again. */
export function copyOps(record: PeeringRecord, copies: Copies, expiresAt?: number): Op[] {
  return roles.flatMap((role): Op[] => {
    const copy = copies[role];
    const tenant = record.spec.across?.[role];
    if (!copy || tenant === undefined) return [];
    const value = withOwn(copyFor(record, role), copy.value);
    const ends = expiresAt === undefined || copy.expiresAt !== undefined;
    if (ends && sameJson(value, copy.value)) return [];
    const { pk, sk, version } = copy;
    const end = copy.expiresAt ?? expiresAt;
    return [
      { op: 'update', pk, sk, value, ifVersion: version, ...(end === undefined ? {} : { expiresAt: end }) },
      ...countOps(tenant, 'peerings', copy.value, value),
      ...(expiresAt === undefined || copy.expiresAt !== undefined
        ? []
        : endingLabelOps({ tenant, kind: 'peering', id: value.spec.id }, value.spec.labels, expiresAt)),
    ];
  });
}
