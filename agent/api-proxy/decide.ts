/** The objects by which consumers find the proxy in front of this API server, and who may use it. Pure. */
import type { EndpointSlice } from '#agent/network/ranges/ip/decide.ts';
import { readPublicKey } from '#agent/pki/cluster-keys.ts';
import type { Applied } from '#kube/model/types.ts';
import type { Service } from '#shared/domain/core-kinds.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';

export const proxyServiceName = 'isthmus-api-server-proxy';
const portName = 'proxy';

/** Without a selector: of all replicas only the leader serves, so that a token is accepted once. */
export const forgeProxyService = (namespace: string): Applied<Service> => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: proxyServiceName, namespace, labels: { [label.managed]: 'true' } },
  spec: { ports: [{ name: portName, port: networkPort.apiServerProxy, protocol: 'TCP' }] },
});

/** `at`: where the listener is. While there is none, neither is this. */
export const forgeProxyEndpoints = (
  namespace: string,
  at: { readonly ip: string; readonly port: number },
): Applied<EndpointSlice> => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: proxyServiceName,
    namespace,
    labels: {
      [label.managed]: 'true',
      'kubernetes.io/service-name': proxyServiceName,
      'endpointslice.kubernetes.io/managed-by': 'isthmus',
    },
  },
  addressType: 'IPv4',
  endpoints: [{ addresses: [at.ip], conditions: { ready: true } }],
  ports: [{ name: portName, port: at.port, protocol: 'TCP' }],
});

export interface ProxyUser {
  readonly consumer: string;
  /** As its Tenant has it. */
  readonly publicKey: string;
  /** Whether it was told to come to the API server this way; any other comes for its certificate alone. */
  readonly isInBand: boolean;
  /** base64 of the PEM. */
  readonly certificate: string | undefined;
}

/**
 * Consumers that hold credentials for this cluster and have a link to it, one for each of their Tenants. Who is drained or going, or has not proved
 * its key, has no business there. `linked`: clusters that there is a Configuration for.
 */
export const proxyUsers = (tenants: readonly Tenant[], linked: ReadonlySet<string>): readonly ProxyUser[] =>
  tenants.flatMap(({ metadata, spec, status }) => {
    const { clusterID: consumer, publicKey, proxyURL, tenantCondition } = spec;
    const isInBand = Boolean(proxyURL);
    const isWelcome =
      (isInBand || linked.has(consumer)) &&
      status?.authParams !== undefined &&
      tenantCondition !== 'Drained' &&
      metadata.deletionTimestamp === undefined;
    return isWelcome && publicKey ? [{ consumer, publicKey, isInBand, certificate: status.authParams?.signedCRT }] : [];
  });

/** Of the clusters that a link is declared to. */
export const linkedClusters = (configurations: readonly Configuration[]): ReadonlySet<string> =>
  new Set(
    configurations.flatMap(({ metadata }) =>
      metadata.deletionTimestamp === undefined ? (metadata.labels?.[label.remoteClusterId] ?? []) : [],
    ),
  );

/** What a Tenant calls its public key; undefined when it is none that signs tokens. */
export function proxyKey(publicKey: string): ReturnType<typeof readPublicKey> | undefined {
  try {
    const key = readPublicKey(Buffer.from(publicKey, 'base64'));
    return key.asymmetricKeyType === 'ed25519' ? key : undefined;
  } catch {
    return undefined;
  }
}

/** `host:port` by which consumers and pods call this API server. */
export function proxyTargets(apiServerUrl: string): ReadonlySet<string> {
  const { host, port } = new URL(apiServerUrl);
  const told = port === '' ? `${host}:443` : host;
  return new Set([
    told,
    'kubernetes.default:443',
    'kubernetes.default.svc:443',
    'kubernetes.default.svc.cluster.local:443',
  ]);
}
