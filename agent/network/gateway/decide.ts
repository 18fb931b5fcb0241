/** Whether a GatewayServer or GatewayClient may be rendered, and what it says about itself. Pure. */
import { type Condition, findCondition, setCondition } from '#kube/writes/conditions.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkLabel } from '#shared/domain/network-keys.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import type { Trouble } from './wireguard/endpoint.ts';

export type Gateway = GatewayServer | GatewayClient;

const age = ({ metadata, kind }: KubeObject): string =>
  `${metadata.creationTimestamp ?? ''} ${kind} ${metadata.namespace}/${metadata.name}`;

/** One link for a pair of clusters: of two gateways the older one counts, so that a mistake takes no running link down. */
export function rivalOf(gateway: Gateway, peer: string, all: readonly Gateway[]): Trouble | undefined {
  const older = all.find(
    (other) =>
      other.metadata.uid !== gateway.metadata.uid &&
      other.metadata.deletionTimestamp === undefined &&
      other.metadata.labels?.[label.remoteClusterId] === peer &&
      age(other) < age(gateway),
  );
  return older === undefined
    ? undefined
    : {
        reason: 'TwoGateways',
        message: `${older.kind} ${older.metadata.namespace}/${older.metadata.name} is the link to ${peer} already; delete one of the two`,
      };
}

/** By its labels, as Liqo finds it. */
export function keyTrouble(
  keys: readonly PublicKey[],
  namespace: string | undefined,
  peer: string,
): Trouble | undefined {
  const own = keys.filter(
    ({ metadata }) =>
      metadata.namespace === namespace &&
      metadata.deletionTimestamp === undefined &&
      metadata.labels?.[label.remoteClusterId] === peer &&
      metadata.labels[networkLabel.gatewayResource] === 'true',
  );
  if (own.length === 1) return undefined;
  return own.length === 0
    ? {
        reason: 'PublicKeyMissing',
        message: `the key of ${peer} is not here: create a PublicKey with labels ${label.remoteClusterId}=${peer} and ${networkLabel.gatewayResource}=true`,
      }
    : {
        reason: 'AmbiguousPublicKey',
        message: `PublicKeys ${own
          .map(({ metadata }) => metadata.name)
          .sort()
          .join(' and ')} are both labelled as the key of ${peer}; keep one`,
      };
}

/** What a concrete gateway of any kind reports in its status: Liqo's contract for third-party transports. */
export interface ConcreteStatus {
  readonly secretRef?: Record<string, unknown>;
  readonly endpoint?: Record<string, unknown>;
  readonly internalEndpoint?: Record<string, unknown>;
  readonly conditions?: readonly Condition[];
}

export interface StatusInput {
  readonly gateway: Gateway;
  /** Which field names the concrete gateway. */
  readonly refField: 'serverRef' | 'clientRef';
  /** Undefined: not rendered. */
  readonly concrete: KubeObject | undefined;
  readonly status: ConcreteStatus | undefined;
  readonly trouble: Trouble | undefined;
  /** What counts once everything else works. */
  readonly lastTrouble: Trouble | undefined;
  readonly nowMs: number;
}

/** Its own trouble first, then that of the concrete gateway, then the peer's. */
export function gatewayStatus(input: StatusInput): Record<string, unknown> {
  const { gateway, refField, concrete, status, nowMs } = input;
  const below = findCondition(status?.conditions, 'Ready');
  // Transports of others have no conditions: their endpoint inside the cluster says that they work.
  const works = below === undefined ? status?.internalEndpoint !== undefined : below.status === 'True';
  const rendering = { reason: 'Rendering', message: 'waiting for the rendered gateway' };
  const trouble = input.trouble ?? (works ? input.lastTrouble : (below ?? rendering));
  const ready = {
    type: 'Ready',
    status: trouble === undefined ? 'True' : 'False',
    reason: trouble?.reason ?? 'Ready',
    message: trouble?.message ?? 'the gateway has keys, an active pod and the key of the peer',
    ...(gateway.metadata.generation === undefined ? {} : { observedGeneration: gateway.metadata.generation }),
  } as const;
  return {
    ...(concrete === undefined
      ? {}
      : {
          [refField]: {
            apiVersion: concrete.apiVersion,
            kind: concrete.kind,
            name: concrete.metadata.name,
            namespace: concrete.metadata.namespace,
          },
        }),
    ...(refField === 'clientRef' || status?.endpoint === undefined ? {} : { endpoint: status.endpoint }),
    ...(status?.secretRef === undefined ? {} : { secretRef: status.secretRef }),
    ...(status?.internalEndpoint === undefined ? {} : { internalEndpoint: status.internalEndpoint }),
    conditions: [...setCondition(gateway.status?.conditions as readonly Condition[] | undefined, ready, nowMs)],
  };
}
