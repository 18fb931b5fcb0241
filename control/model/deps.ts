/** What every use case of the control plane is built from. */
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Log } from '#shared/ports/log.ts';
import type { AgentChannel } from '../ports/agent-channel.ts';
import type { DocumentSource } from '../ports/document-source.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { EventTargetSender } from '../ports/event-target-sender.ts';
import type { SecretBox } from '../ports/secret-box.ts';
import type { Store } from '../ports/store.ts';
import type { WebhookSender } from '../ports/webhook-sender.ts';
import type { Limits } from './limits.ts';

/** How agents reach this broker; the audience of what they sign. */
interface BrokerAddress {
  /** Without a trailing slash. */
  readonly url: string;
  /** Hex SHA-256 of the broker CA certificate's DER, when it is self-made. */
  readonly caHash?: string;
}

export interface ControlDeps {
  readonly store: Store;
  /** Absent: use cases look at what they changed themselves, and only the sweep repairs after a crash. */
  readonly bus?: EventBus;
  readonly channel: AgentChannel;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** A function because a local broker knows its port only after listening. */
  readonly broker: () => BrokerAddress;
  /** How often an agent with nothing to say is heard of. Default 300. One that is missing for three times as long counts as offline. */
  readonly heartbeatSeconds?: number;
  /** What a tenant gets unless the operator set otherwise for it. Default: `hostedLimits`. */
  readonly limits?: Limits;
  /** Fetches the keys of identity providers. Absent: bearer tokens of identity providers are refused. */
  readonly documents?: DocumentSource;
  /** Keeps what webhooks sign with. Absent: there are no webhooks. */
  readonly secretBox?: SecretBox;
  /** Posts to webhooks. Absent: there are no webhooks. */
  readonly webhookSender?: WebhookSender;
  /** Puts events into buses and queues of tenants. Absent: there are no event targets. */
  readonly eventTargetSender?: EventTargetSender;
}

export interface PageRequest {
  /** 1 to 200, default 50. */
  readonly limit?: number;
  readonly cursor?: string;
}
