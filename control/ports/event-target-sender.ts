/** The event target sender port: one event into a bus or a queue of a tenant, by a role of the tenant's own that it lets this broker assume. */
import type { SendOutcome } from './webhook-sender.ts';

export interface TargetMessage {
  /** For the name of the session that the tenant finds in its own logs. */
  readonly tenant: string;
  /** ARN of the bus or the queue. */
  readonly arn: string;
  readonly roleArn: string;
  readonly externalId: string;
  readonly event: {
    readonly id: string;
    /** As in the catalogue. */
    readonly type: string;
    readonly subject: string;
    readonly at: number;
  };
  /** The CloudEvent as JSON. */
  readonly body: string;
}

export interface EventTargetSender {
  /** The principal that assumes the role: what its trust policy has to name. An ARN. */
  readonly principal: string;
  /**
   * Within ten seconds, with a session that may write to this target and do nothing else. An outcome with a status has status 200 and the id that the
   * service gave. Rejects only when `signal` aborts.
   */
  send(message: TargetMessage, signal?: AbortSignal): Promise<SendOutcome>;
}
