/** What doctor knows when it decides: objects of each cluster as they were read, and what was asked of them. */
import type { Side } from '#cli/network-test/side.ts';
import type { ClusterObjects } from '#cli/status/summary.ts';
import type { CoreEvent, DaemonSet, Deployment } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace, Node, Pod } from '#shared/domain/kube-object.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import type { PeeringCondition } from '#shared/schema/api/resources.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import type { ResourceSlice } from '#shared/schema/liqo/resource-slice.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';

/** A NetworkPolicy as far as it matters here. */
export interface TrafficPolicy extends KubeObject {
  readonly spec?: { readonly podSelector?: { readonly matchLabels?: Readonly<Record<string, string>> } };
}

/** Of a Secret with a kubeconfig for a provider; no key and no token. */
export interface CredentialFacts {
  readonly namespace: string;
  readonly secret: string;
  /** Cluster ID of the provider. */
  readonly peer: string;
  readonly used: 'control plane' | 'virtual node';
  /** Undefined: the Secret is there and has no readable kubeconfig. */
  readonly read?: {
    readonly server: string;
    /** Through the link, by the proxy for API servers. */
    readonly proxied: boolean;
    /** SHA-256 of each certificate, hex. */
    readonly trusts: readonly string[];
    /** Milliseconds since the epoch; absent with a token. */
    readonly endsAt?: number;
  };
}

export interface Claimant {
  readonly node: string;
  /** As the API server calls it. */
  readonly manager: string;
  /** Of its last change, milliseconds since the epoch. */
  readonly at: number;
}

/** Of one webhook configuration of ours: what the API server said when a request that concerns it was tried. */
export interface WebhookFacts {
  /** Absent: nothing of ours is registered. */
  readonly registered: boolean;
  /** In the words of the API server; undefined: it was called. */
  readonly failure?: string;
  /** Their Service. Absent: none is named, or it was not read. */
  readonly service?: {
    /** As `key=value`, by commas; undefined: there is no Service. */
    readonly selector: string | undefined;
    /** Ready addresses behind it. */
    readonly endpoints: number;
  };
}

/** Seen from inside a node, by its node process. */
export interface NodeSight {
  readonly node: string;
  readonly connections?: { readonly count: number; readonly most: number };
  /** Undefined: it answered. */
  readonly failure?: string;
}

/** Of the active gateway pod of a link that is down: bytes of WireGuard within 6 s. */
export interface GatewaySight {
  readonly peer: string;
  readonly received: number;
  readonly sent: number;
  /** UDP packets that came to a port on which nothing listens. */
  readonly strays: number;
  /** The same in the network of its node, of any origin. */
  readonly nodeStrays: number;
}

export interface Unread {
  readonly what: string;
  readonly code?: ErrorCode;
  readonly message: string;
}

export interface LinkObjects {
  readonly configurations: readonly Configuration[];
  readonly servers: readonly GatewayServer[];
  readonly clients: readonly GatewayClient[];
  readonly connections: readonly Connection[];
  readonly publicKeys: readonly PublicKey[];
  /** Base64 public key in the Secret of each gateway, by cluster ID of the peer. */
  readonly ownKeys: Readonly<Record<string, string>>;
}

export interface ClusterFacts {
  readonly status: ClusterObjects;
  /** Server URL that the agent gives to consumers. */
  readonly apiServerUrl?: string;
  /** SHA-256 of the certificates that this cluster's own pods trust for its API server, hex. */
  readonly ownCas: readonly string[];
  /** Milliseconds that this machine's clock is ahead of the API server's. */
  readonly clockAheadMs?: number;
  /** Without virtual ones. */
  readonly nodes: readonly Node[];
  readonly virtualNodes: readonly Node[];
  /** Of virtual nodes: programs other than Isthmus that report their status as kubelets do. */
  readonly claimants: readonly Claimant[];
  readonly namespaces: readonly Namespace[];
  /** Deployments that look like an agent of ours or of Liqo, in any namespace. */
  readonly agents: readonly Deployment[];
  readonly nodeProcess: DaemonSet | undefined;
  /** Of agent, node processes and gateways. */
  readonly ownPods: readonly Pod[];
  /** Warnings in namespaces of ours and in offloaded ones, the newest first. */
  readonly events: readonly CoreEvent[];
  /** Names of kinds of ours, with what is other than here. */
  readonly crds: readonly { readonly name: string; readonly how: string }[];
  /** Roles and bindings of the agent that are missing or changed. */
  readonly rights: readonly string[];
  readonly webhooks: WebhookFacts;
  /** In `liqo` and in tenant namespaces, those that are not ours. */
  readonly policies: readonly TrafficPolicy[];
  /** Undefined: the cluster has no Service kube-dns. */
  readonly dns?: { readonly ready: number; readonly why: string };
  readonly link: LinkObjects;
  /** By cluster ID of the peer. */
  readonly sides: Readonly<Record<string, Side>>;
  readonly credentials: readonly CredentialFacts[];
  readonly identities: readonly Identity[];
  readonly tenants: readonly Tenant[];
  /** Keys of taints that any PeeringPolicy lets guests tolerate. */
  readonly guestTolerations: readonly string[];
  readonly slices: readonly ResourceSlice[];
  /** Consumers whose tenant namespace here lacks a binding of a remote role: what is missing. */
  readonly consumerRights: Readonly<Record<string, readonly string[]>>;
  /** Of namespaces that are offloaded or wait for it: those that are not well; and ShadowPods' pods of consumers. */
  readonly pods: readonly Pod[];
  readonly sights: readonly NodeSight[];
  readonly gatewaySights: readonly GatewaySight[];
}

/** One cluster, as far as it could be looked at. */
export interface Looked {
  readonly cluster: string;
  readonly server: string;
  /** `kubectl` with the kubeconfig and context by which it was asked. */
  readonly kubectl: string;
  /** Set: it did not answer, and nothing else is known. */
  readonly silent?: { readonly code: ErrorCode | undefined; readonly message: string };
  readonly installed: boolean;
  readonly unread: readonly Unread[];
  readonly facts?: ClusterFacts;
}

/** What a network test said, when one was made. */
export interface Probed {
  readonly failed: readonly {
    readonly hop: string;
    readonly at: string;
    readonly why: string;
    readonly todo: string;
  }[];
  readonly rows: number;
  /** Why there was none. */
  readonly none?: string;
}

/** What the broker says of the peering, where one was asked. */
export interface BrokerSaid {
  readonly url: string;
  readonly pair: readonly [consumer: string, provider: string];
  /** Undefined: it answered. */
  readonly failure?: string;
  /** Absent: it knows no such peering. */
  readonly phase?: string;
  readonly conditions: readonly PeeringCondition[];
}

export interface DoctorFacts {
  readonly now: number;
  /** Consumer first; one or two. */
  readonly clusters: readonly Looked[];
  /** Cluster ID of the peer that is asked about; undefined: all. */
  readonly peer?: string;
  readonly probed?: Probed;
  readonly broker?: BrokerSaid;
}
