/** What the store keeps about peerings. */
import type {
  ClusterFacts,
  DesiredSet,
  KubeManifest,
  ObservedSet,
  PeeringAsk,
  PeeringOwner,
} from '#shared/schema/protocol/agent-protocol.ts';
import type { CrossTenant } from './cross-tenant.ts';
import type { Labels } from './labels.ts';
import type { Link, Throughput } from './link.ts';
import type { NetworkTerms } from './network-terms.ts';
import type { PeeringCondition, Phase, ReportWarning, Resources } from './peering.ts';

/** What was asked for. Changed by people only. */
export interface PeeringSpec {
  readonly id: string;
  readonly consumer: string;
  readonly provider: string;
  readonly resources: Resources;
  readonly class: string;
  /** Absent: made before there were links, and has none. */
  readonly network?: NetworkTerms;
  /** base64 of the text that the consumer signs to prove its key to the provider; that text is the base64 of 64 random bytes. */
  readonly nonce: string;
  readonly createdAt: number;
  readonly requestedBy: string;
  /** Of the request that asked for this last: what the broker and the agents log about the peering names it. Absent: the broker itself did. */
  readonly requestId?: string;
  /** The tenant's own words. Across tenants: in its own copy, and nowhere else. */
  readonly labels?: Labels;
  /** The `Peering` object in the consumer cluster that asks for this peering. */
  readonly ask?: {
    readonly name: string;
    readonly uid: string;
    readonly generation: number;
    /** Whose terms hold; absent: the object's. */
    readonly owner?: PeeringOwner;
  };
  readonly unpeerRequestedAt?: number;
  /** When a caller forced the removal: a silent side is no longer waited for. */
  readonly forcedAt?: number;
  /** Present when the two clusters are of two tenants. */
  readonly across?: CrossTenant;
  /** Across tenants: whose side ended it. */
  readonly unpeerRequestedBy?: DesiredSet['role'];
}

/** What the consumer answered to the nonce; base64 as in its Secret. */
export interface Signed {
  readonly signedNonce: string;
  readonly csr: string;
  readonly publicKey: string;
  /** The consumer's former key signs this one: a provider that knows that one needs no new consent. */
  readonly succession?: string | undefined;
}

/** What the provider issued. */
export interface Issued {
  readonly authParams: Readonly<Record<string, string>>;
  readonly tenantNamespace: string;
}

/** The progress of an end. All times are when something was first seen to be so. */
export interface Removal {
  readonly startedAt: number;
  readonly consumerCleanAt?: number;
  readonly providerCleanAt?: number;
  /** The consumer was told to stop waiting for the provider. */
  readonly consumerForcedAt?: number;
  readonly providerAskedAt?: number;
  /** The provider was told to stop waiting for the consumer. */
  readonly providerForcedAt?: number;
  readonly endedAt?: number;
  /** Both sides are clean or gone for good: nothing is left to wait for. */
  readonly finishedAt?: number;
}

/** What the state machine remembers. Written by `reconcilePeering` only. */
export interface PeeringState {
  readonly phase: Phase;
  readonly conditions: readonly PeeringCondition[];
  readonly phaseSince: Readonly<Partial<Record<Phase, number>>>;
  readonly consentedAt?: number;
  readonly signed?: Signed;
  readonly issued?: Issued;
  readonly granted?: Resources;
  /** What each cluster signed for the other. Not read here. */
  readonly announced?: { readonly consumer?: string; readonly provider?: string };
  /** Present from the moment both sides are asked to make it. */
  readonly link?: Link;
  /** Where the consumer reaches the provider's API server through the link. */
  readonly proxyUrl?: string;
  readonly removal?: Removal;
  readonly leftBehind: readonly string[];
  /** What the clusters reported and could not be read. Absent: nothing. */
  readonly warnings?: readonly ReportWarning[];
}

export interface PeeringRecord {
  readonly spec: PeeringSpec;
  readonly state: PeeringState;
}

/** What a side should look like. */
export interface DesiredContent {
  readonly state: DesiredSet['state'];
  readonly peerDead: boolean;
  readonly objects: readonly KubeManifest[];
  /** What the peer signed for this side. */
  readonly announcement?: string;
}

export interface DesiredRecord extends DesiredContent {
  readonly peering: string;
  readonly role: DesiredSet['role'];
  readonly peer: string;
  /** Present when the peer is of another tenant. */
  readonly peerTenant?: string;
  readonly revision: number;
  /** As in the peering when this was written. */
  readonly requestId?: string;
  /** The revision that first said `absent`. */
  readonly absentRevision?: number;
}

export type ObservedRecord = ObservedSet & {
  /** Of the last whole minute that was reported. Absent: none yet, or not known. */
  readonly throughput?: Throughput;
};

export interface PairRecord {
  readonly id: string;
}

export interface RevisionRecord {
  readonly revision: number;
  /** When it became that: a cluster of which something was asked lately is heard more often. */
  readonly at?: number;
}

export interface AsksRecord {
  readonly asks: readonly AskRecord[];
}

/** A `Peering` object as last reported, and why it was refused, if it was. */
export interface AskRecord extends PeeringAsk {
  readonly refusal?: { readonly code: string; readonly message: string; readonly at: number };
}

export interface LookRecord {
  readonly at: number;
  /** Of the refused asks of a cluster: whom they ask for. */
  readonly awaits?: readonly string[];
}

/** Whose time comes: a peering, the refused asks of a cluster, or a request of another tenant. */
export interface DueRecord {
  readonly peering?: string;
  readonly request?: string;
  readonly asksOf?: string;
}

/** One side as the state machine sees it. */
export interface SideInput {
  readonly facts: ClusterFacts;
  readonly lastSeenAt: number;
  /** From when on its silence counts as being offline. */
  readonly offlineFrom: number;
  /** From which addresses its agent was seen lately, the newest first. */
  readonly publicAddresses?: readonly string[];
  /** The cluster left the tenant: no agent will ever report for it. */
  readonly left: boolean;
  readonly observed?: ObservedSet;
  /** What it is asked for at present. */
  readonly desired?: DesiredRecord;
}
