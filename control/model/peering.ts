/** What a peering is: what was asked for, what the state machine remembers, what users see. */
import type { Phase } from '#shared/domain/peering-phase.ts';
import type { GatewayServiceType } from '#shared/schema/api/network.ts';
import type { PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { Labels } from './labels.ts';
import type { ConnectionReport } from './link.ts';
import type { NetworkTerms } from './network-terms.ts';

export type { Phase };

export type Resources = Readonly<Record<string, string>>;
export type ConditionType =
  | 'Consented'
  | 'ConsumerOnline'
  | 'ProviderOnline'
  | 'Authenticated'
  | 'ResourcesGranted'
  | 'NetworkReady'
  | 'NodeReady'
  | 'ConsumerClean'
  | 'ProviderClean';

/** One thing that must be so. When it is not, the message says what is missing, `side` where, and `action` what to do. */
export interface PeeringCondition {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly side: PeeringRole | 'both';
  /** Milliseconds since the epoch when `status` took its value. */
  readonly since: number;
  /** What a person can do about it; empty when there is nothing but waiting. */
  readonly action: string;
}

/** A field of a report that does not have its form and was left out. */
export interface ReportWarning {
  readonly side: PeeringRole;
  readonly message: string;
}

export interface NetworkView extends NetworkTerms {
  readonly link?: LinkView;
}

export interface LinkView {
  /** The cluster that is dialled. */
  readonly server: string;
  readonly endpoint?: string;
  readonly serviceType: GatewayServiceType;
  readonly mtu: number;
  readonly consumer: LinkEndView;
  readonly provider: LinkEndView;
}

export type LinkEndView = Omit<ConnectionReport, 'lastHandshakeTime'> & {
  readonly reportedAt?: number;
  /** When it was reported. */
  readonly handshakeAgeSeconds?: number;
};

export interface PeeringView {
  readonly id: string;
  readonly consumer: string;
  readonly provider: string;
  readonly resources: Resources;
  readonly class: string;
  /** The tenant's own words; the tenant of the other side has its own. */
  readonly labels: Labels;
  readonly phase: Phase;
  readonly conditions: readonly PeeringCondition[];
  /** One sentence: what is being waited for, or that nothing is. */
  readonly waitingFor: string;
  /** What the provider granted. */
  readonly granted?: Resources;
  /** Absent: made before there were links. */
  readonly network?: NetworkView;
  /** Name of the virtual node in the consumer. */
  readonly nodeName: string;
  readonly createdAt: number;
  /** When each phase was first entered, for timelines. */
  readonly phaseSince: Readonly<Partial<Record<Phase, number>>>;
  readonly unpeerRequestedAt?: number;
  /** What could not be cleaned because a side was dead; empty when nothing was left behind. */
  readonly leftBehind: readonly string[];
  readonly warnings?: readonly ReportWarning[];
  /** Present when the other cluster is of another tenant. */
  readonly across?: {
    readonly side: PeeringRole;
    readonly peerTenant: string;
    readonly by: 'invitation' | 'request';
    readonly limits: Resources;
    readonly classes: readonly string[];
    readonly lapsesAt: number;
    readonly endedBy?: PeeringRole;
  };
  /** The only writer of its terms: a `Peering` object in the consumer cluster, or the API. */
  readonly owner: { readonly kind: 'object'; readonly name: string } | { readonly kind: 'broker' };
  /** For ETag and If-Match. */
  readonly version: number;
}
