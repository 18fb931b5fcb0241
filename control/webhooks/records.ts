/** What is stored of where events go - webhooks and event targets - and of their deliveries, and what of it is shown. */
import type { TargetType } from '#shared/domain/event-target-arn.ts';
import type { Item } from '../ports/store.ts';

export interface SecretRecord {
  readonly id: string;
  /** By the secret box. Named so that exports leave it out. */
  readonly sealedSecret: string;
  readonly createdAt: number;
  /** Of one that was replaced: signs as well until then. */
  readonly expiresAt?: number;
}

/** What gets events of a tenant: the id says which kind it is. */
export interface ReceiverRecord {
  readonly id: string;
  readonly description: string;
  /** As in the catalogue. */
  readonly types: readonly string[];
  readonly disabled?: { readonly at: number; readonly reason: string };
  readonly createdAt: number;
  readonly createdBy: string;
}

export interface WebhookRecord extends ReceiverRecord {
  readonly url: string;
  /** The newest first. */
  readonly secrets: readonly SecretRecord[];
}

export interface EventTargetRecord extends ReceiverRecord {
  /** Of the bus or the queue. */
  readonly arn: string;
  readonly roleArn: string;
}

/** There from the first failure after a success until the next success. */
export interface FailingRecord {
  readonly since: number;
}

export interface Attempt {
  readonly at: number;
  readonly durationMs: number;
  readonly status?: number;
  readonly error?: string;
  /** The beginning of the answer's body. */
  readonly answer?: string;
}

export type DeliveryState = 'pending' | 'delivered' | 'dead';

export interface DeliveryRecord {
  /** Id of the webhook or the event target. */
  readonly receiver: string;
  readonly event: {
    readonly id: string;
    readonly type: string;
    readonly subject: string;
    readonly at: number;
    readonly data: Readonly<Record<string, unknown>>;
  };
  readonly state: DeliveryState;
  /** While pending; the item of the same time in the order of coming work belongs to it. */
  readonly dueAt?: number;
  /** Since it was planned or replayed. */
  readonly failures: number;
  readonly attempts: number;
  readonly createdAt: number;
  readonly last?: Attempt;
}

export interface WebhookView extends Omit<WebhookRecord, 'secrets'> {
  /** Since when every attempt failed. */
  readonly failingSince?: number;
  /** Until when the secret before this one signs as well. */
  readonly oldSecretExpiresAt?: number;
  readonly version: number;
}

export function webhookView({ value, version }: Item<WebhookRecord>, now: number, failingSince?: number): WebhookView {
  const { secrets, ...shown } = value;
  const old = Math.max(...secrets.map(({ expiresAt = 0 }) => expiresAt));
  return {
    ...shown,
    ...(failingSince === undefined ? {} : { failingSince }),
    ...(old > now ? { oldSecretExpiresAt: old } : {}),
    version,
  };
}

export interface EventTargetView extends EventTargetRecord {
  readonly type: TargetType;
  /** What the trust policy of the role has to ask for, and whom it has to name. */
  readonly externalId: string;
  readonly principal: string;
  readonly failingSince?: number;
  readonly version: number;
}

/** What it signs with at that time. */
export const liveSecrets = ({ secrets }: WebhookRecord, now: number): readonly SecretRecord[] =>
  secrets.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now);

export const secretContext = (tenant: string, webhook: string, secret: string): string =>
  `webhook/${tenant}/${webhook}/${secret}`;
