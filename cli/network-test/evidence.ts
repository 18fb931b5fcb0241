/** What is known when a probe failed, as far as it bears on where its packets end. */
import type { Failure } from '#shared/domain/network-probe.ts';
import type { ConnectionFacts } from './side.ts';

/**
 * How a node and its cluster's gateway talk over the overlay: a ping with as many bytes as the link takes; only a small one; none. Undefined:
 * not tried, because there is no test pod or no gateway.
 */
export type Leg = 'works' | 'small-only' | 'silent';

export interface EndEvidence {
  readonly cluster: string;
  /** Of the pod, or the calling node itself. Undefined for hosts outside the cluster. */
  readonly node?: string;
  readonly ranges: 'configured' | { readonly missing: string };
  readonly gateway: 'there' | 'absent' | { readonly problem: string };
  readonly fabric: boolean;
  readonly gatewayPods: number;
  readonly activeNode?: string;
  readonly connection?: ConnectionFacts;
  /** Of the pod's node; true where there is no node. */
  readonly nodeReady: boolean;
  readonly process: boolean;
  readonly overlay: boolean;
  /** Of the pod's node, and of the node with the active gateway pod. */
  readonly leg?: Leg;
  readonly gatewayLeg?: Leg;
  /** User-written firewalls and routes that this node or the gateway could not apply. */
  readonly hostErrors: readonly string[];
}

export type What =
  | 'pod-to-pod'
  | 'pod-to-service'
  | 'node-to-pod'
  | 'pod-to-nodeport'
  | 'outside-to-nodeport'
  | 'pod-to-external'
  /** Of a peer that runs Liqo: as far as this cluster's half goes. */
  | 'node-to-gateway'
  | 'gateway-to-peer';

export interface Evidence {
  readonly what: What;
  /** Nodes of the caller and of the called pod. */
  readonly from: EndEvidence;
  readonly to: EndEvidence;
  /** Undefined: the probe got through, but the source or large packets were not as they should be. */
  readonly failure?: Failure;
  /** Small packets got through, large ones did not. */
  readonly largeOnly: boolean;
  /** Set when it got through with another source than it should have. */
  readonly source?: { readonly seen: string; readonly expected: string };
  /** Whether another caller in the cluster of the called pod got an answer from there. Undefined: none tried. */
  readonly answersLocally?: boolean;
  /** Whether the pods behind a Service or NodePort answered the same caller directly. */
  readonly directly?: boolean;
  /** Whether the same target answered a caller on the node of the active gateway pod of the caller's cluster. */
  readonly fromGatewayNode?: boolean;
  /** Whether the NodePort answered a pod inside. */
  readonly inside?: boolean;
  /** External IPs: why no address was granted. */
  readonly noAddress?: string;
  readonly now: number;
}

export type HopName =
  | 'ranges'
  | 'source node'
  | 'source node to gateway'
  | 'source gateway'
  | 'tunnel'
  | 'target gateway'
  | 'target gateway to node'
  | 'target node'
  | 'target pod'
  | 'service'
  | 'node port'
  | 'external host'
  | 'path MTU'
  | 'source address';

export interface FailingHop {
  readonly hop: HopName;
  /** cluster, or cluster/node. */
  readonly at: string;
  readonly why: string;
  readonly todo: string;
}
