/** What an invitation is: its record, its code, when it can be used, and what each of the two tenants sees of it. */
import { parseResources } from '#shared/domain/quantity.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { checkClasses, checkCluster, refuse, wholeBetween } from '../input/checks.ts';
import type { InvitationRecord, Redemption } from '../model/invitation.ts';
import type { Resources } from '../model/peering.ts';

export interface NewInvitation {
  /** The provider: a cluster of the inviting tenant. */
  readonly cluster: string;
  /** Most that one peering gets; what is not named is limited by the cluster's PeeringPolicy alone. */
  readonly limits?: Resources;
  /** Default `default`. */
  readonly classes?: readonly string[];
  /** Default 7 days. */
  readonly expiresInSeconds?: number;
  /** How many peerings it makes; default 1. */
  readonly uses?: number;
  /** For the inviting tenant only. */
  readonly note?: string;
}

type InvitationState = 'open' | 'used' | 'expired' | 'revoked';

export interface InvitationView {
  readonly id: string;
  readonly cluster: string;
  readonly limits: Resources;
  readonly classes: readonly string[];
  readonly uses: number;
  readonly usesLeft: number;
  readonly note: string;
  readonly state: InvitationState;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly expiresAt: number;
  readonly revokedAt?: number;
  /** Its uses: the peering and the tenant of its consumer. */
  readonly redemptions: readonly Redemption[];
  readonly version: number;
}

const defaultLifeSeconds = 7 * 86_400;
const maxLifeSeconds = 366 * 86_400;
const maxUses = 100;
const maxNote = 500;
/** After its end it can be looked up for a month. */
export const keptAfterMs = 30 * 86_400_000;

const form = /^isi_([a-z0-9]([-a-z0-9]*[a-z0-9])?)_([0-9a-z]{1,64})_([-\w]{43})$/;

/** Tenant and id find the record without looking into any other tenant; the secret proves the right to use it. */
export const codeText = (tenant: string, id: string, secret: string): string =>
  `isi_${tenant}_${id.replace(/^iv_/, '')}_${secret}`;

export function parseCode(text: string): { readonly tenant: string; readonly id: string } | undefined {
  const match = text.length <= 256 ? form.exec(text) : null;
  if (!match) return undefined;
  const [, tenant = '', , id = ''] = match;
  return { tenant, id: `iv_${id}` };
}

export type CheckedInvitation = Pick<InvitationRecord, 'cluster' | 'limits' | 'classes' | 'uses' | 'note'> & {
  readonly lifeMs: number;
};

export function checkNew(input: NewInvitation): CheckedInvitation {
  const { cluster, uses = 1, note = '', expiresInSeconds: life = defaultLifeSeconds } = input;
  checkCluster(cluster, 'cluster');
  if (!wholeBetween(life, 60, maxLifeSeconds)) refuse('expiresInSeconds', life, `60 to ${maxLifeSeconds}`);
  if (!wholeBetween(uses, 1, maxUses)) refuse('uses', uses, `1 to ${maxUses}`);
  if (note.length > maxNote) refuse('note', note, `at most ${maxNote} characters`);
  const limits = parseResources(input.limits ?? {}, 'limits');
  return { cluster, limits, classes: checkClasses(input.classes ?? ['default']), uses, note, lifeMs: life * 1_000 };
}

function stateOf(record: InvitationRecord, now: number): InvitationState {
  if (record.revokedAt !== undefined) return 'revoked';
  if (record.redemptions.length >= record.uses) return 'used';
  return record.expiresAt <= now ? 'expired' : 'open';
}

/** For the tenant that made it. The code is not in the record, and its hash does not leave it. */
export function invitationView({ hash: _, ...record }: InvitationRecord, version: number, now: number): InvitationView {
  return {
    ...record,
    usesLeft: Math.max(0, record.uses - record.redemptions.length),
    state: stateOf({ ...record, hash: '' }, now),
    version,
  };
}

/** The refusal that the holder of the code gets when it is too late. */
export function mustBeOpen(record: InvitationRecord, now: number): void {
  const state = stateOf(record, now);
  if (state === 'open') return;
  const why = {
    used: `was used ${record.uses === 1 ? 'already' : `${record.uses} times, as often as it may be`}`,
    expired: `expired at ${new Date(record.expiresAt).toISOString()}`,
    revoked: 'was revoked',
  }[state];
  throw new AppError('invitation_closed', `this invitation ${why}; ask its tenant for a new one`, {
    detail: { state },
  });
}
