/** What a request across tenants is: its record, its life, and what each of the two tenants sees of it. */
import { AppError } from '#shared/errors/app-error.ts';
import { refuse, wholeBetween } from '../input/checks.ts';
import type { Resources } from '../model/peering.ts';
import type { Op } from '../ports/store.ts';
import { key } from '../store/keys.ts';

export interface NewRequest {
  /** A cluster of the asking tenant. */
  readonly consumer: string;
  readonly providerTenant: string;
  /** A cluster that that tenant published. */
  readonly provider: string;
  readonly resources?: Resources;
  readonly class?: string;
  readonly reason?: string;
  /** Default 7 days. */
  readonly expiresInSeconds?: number;
}

export type RequestState = 'pending' | 'approved' | 'rejected' | 'expired' | 'withdrawn';

/** What either tenant sees. */
export interface RequestView {
  readonly id: string;
  /** Whether the reader is asked or asks. */
  readonly direction: 'received' | 'sent';
  readonly consumerTenant: string;
  readonly consumer: string;
  readonly providerTenant: string;
  readonly provider: string;
  readonly resources: Resources;
  readonly class: string;
  /** Why it was asked for. */
  readonly reason: string;
  readonly state: RequestState;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly decidedAt?: number;
  /** What the provider's tenant said to it. */
  readonly answer?: string;
  /** The peering that it became. */
  readonly peering?: string;
  /** To the provider's tenant only: the principal or the rule that decided. */
  readonly decidedBy?: string;
  readonly version: number;
}

/** The provider's tenant keeps it whole; the asking tenant a copy without `decidedBy`, the provider's tenant one without `askedBy`. */
export type RequestRecord = Omit<RequestView, 'direction' | 'version'> & { readonly askedBy?: string };

const maxReason = 500;
const defaultLifeSeconds = 7 * 86_400;
const maxLifeSeconds = 90 * 86_400;
/** A decided request can be looked up for a month. */
const keptMs = 30 * 86_400_000;

export function checkReason(text: string, field: string): string {
  if (text.length > maxReason) refuse(field, text, `at most ${maxReason} characters`);
  return text;
}

export function checkLife(seconds: number = defaultLifeSeconds): number {
  if (!wholeBetween(seconds, 60, maxLifeSeconds)) refuse('expiresInSeconds', seconds, `60 to ${maxLifeSeconds}`);
  return seconds * 1_000;
}

/** A pending request whose time is over is expired, whether or not anybody has written so yet. */
const stateAt = ({ state, expiresAt }: RequestRecord, now: number): RequestState =>
  state === 'pending' && expiresAt <= now ? 'expired' : state;

export function requestView(
  record: RequestRecord,
  { version, tenant, now }: { readonly version: number; readonly tenant: string; readonly now: number },
): RequestView {
  const { askedBy: _, ...shown } = record;
  const direction = record.providerTenant === tenant ? 'received' : 'sent';
  return { ...shown, direction, state: stateAt(record, now), version };
}

export const copyForAsker = ({ decidedBy: _, ...record }: RequestRecord): RequestRecord => record;
export const copyForProvider = ({ askedBy: _, ...record }: RequestRecord): RequestRecord => record;

export function mustBePending(record: RequestRecord, now: number): void {
  const state = stateAt(record, now);
  if (state === 'pending') return;
  throw new AppError('request_closed', `request ${record.id} is ${state}`, { detail: { id: record.id, state } });
}

export const dueId = (id: string): string => `request:${id}`;
export const pairText = ({ consumer, provider }: Pick<RequestRecord, 'consumer' | 'provider'>): string =>
  `${consumer}/${provider}`;

export const tenantsOf = ({ providerTenant, consumerTenant }: RequestRecord) => [providerTenant, consumerTenant];

interface About {
  readonly subject: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What events say of a request. */
export const aboutOf = (request: RequestRecord, data: Readonly<Record<string, unknown>> = {}): About => {
  const { consumerTenant, providerTenant, consumer, provider } = request;
  return { subject: `request/${request.id}`, data: { consumerTenant, consumer, providerTenant, provider, ...data } };
};
/** The same for audit logs. */
export const pickAudit = ({ subject, data }: About) => ({ subject, after: data });

interface Versions {
  readonly provider: number;
  /** Absent: the asking tenant's copy is gone. */
  readonly asker?: number;
  /** Of the entry that keeps the pair to one open request; absent when it is another's or gone. */
  readonly open?: number;
  readonly due?: boolean;
}

/** Both copies of a request that is no longer pending, and the end of what kept it open. */
export function closeOps(record: RequestRecord, versions: Versions, now: number): Op[] {
  const { id, providerTenant, consumerTenant } = record;
  const expiresAt = now + keptMs;
  return [
    {
      op: 'update',
      ...key.inbox(providerTenant, id),
      value: copyForProvider(record),
      ifVersion: versions.provider,
      expiresAt,
    },
    ...(versions.asker === undefined
      ? []
      : [
          {
            op: 'update' as const,
            ...key.sentRequest(consumerTenant, id),
            value: copyForAsker(record),
            ifVersion: versions.asker,
            expiresAt,
          },
        ]),
    ...(versions.open === undefined
      ? []
      : [
          {
            op: 'delete' as const,
            ...key.openRequest(providerTenant, consumerTenant, pairText(record)),
            ifVersion: versions.open,
          },
        ]),
    ...(versions.due
      ? [{ op: 'delete' as const, ...key.due(providerTenant, record.expiresAt, dueId(id)), ifVersion: 1 }]
      : []),
  ];
}
