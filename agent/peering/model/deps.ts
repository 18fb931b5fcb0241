/** What every controller of authentication and negotiation is given. */
import type { Caches, Cluster, KubeApi } from '#kube/model/types.ts';
import type { CredentialSetting } from '#shared/domain/credential-setting.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Log } from '#shared/ports/log.ts';

export type CredentialKind = Exclude<CredentialSetting, 'auto'>;

export interface PeeringConfig {
  /** How peers reach the API server of this cluster. */
  readonly apiServerUrl: string;
  /** PEM bundle that peers verify it with. */
  readonly apiServerCa: string;
  readonly systemNamespace: string;
  /** ClusterRole that pods of gateways need in tenant namespaces; absent: none. */
  readonly gatewayRole?: string;
  /** Life of the certificates that this cluster issues to consumers; default 7 days, at least 600 (the API server's minimum). */
  readonly certificateLifetimeSeconds?: number;
  /** What it issues to them: certificates, tokens (where its signer signs no certificates), or what it finds that it can. */
  readonly credentials: CredentialSetting;
  /** Of the virtual nodes that stand for this cluster at its consumers. */
  readonly clusterLabels?: Readonly<Record<string, string>>;
}

/** The provider's API server as one consumer identity sees it. */
export interface PeerConnection {
  readonly api: KubeApi;
  readonly caches: Caches;
}

/** Opens a connection that lives until `signal` aborts. Fails with `invalid_input` when the kubeconfig is none. */
export type ConnectPeer = (kubeconfig: string, signal: AbortSignal) => Promise<PeerConnection>;

export interface PeeringDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly config: PeeringConfig;
  readonly clock: Clock;
  readonly log: Log;
  readonly ids: Ids;
  readonly connectPeer?: ConnectPeer;
}

export const certificateSeconds = (config: PeeringConfig): number => config.certificateLifetimeSeconds ?? 7 * 24 * 3600;
