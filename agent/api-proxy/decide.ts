/** The objects by which consumers find the proxy in front of this API server, and the list of consumers that may use it. Pure. */
import type { EndpointSlice } from '#agent/network/ranges/ip/decide.ts';
import { readPublicKey } from '#agent/pki/cluster-keys.ts';
import type { Applied } from '#kube/model/types.ts';
import { type Condition, removeCondition, setCondition } from '#kube/writes/conditions.ts';
import { parseAddress, parseCidr, sizeOf } from '#shared/domain/cidr.ts';
import type { Service } from '#shared/domain/core-kinds.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { type Tenant, tenantConditionType } from '#shared/schema/liqo/tenant.ts';

export const proxyServiceName = 'isthmus-api-server-proxy';
const portName = 'proxy';

/** Without a selector: of all replicas only the leader serves, so that a token is accepted once. */
export const buildProxyService = (namespace: string): Applied<Service> => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: proxyServiceName, namespace, labels: { [label.managed]: 'true' } },
  spec: { ports: [{ name: portName, port: networkPort.apiServerProxy, protocol: 'TCP' }] },
});

/** `at`: where the listener is. While there is none, neither is this. */
export const buildProxyEndpoints = (
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
 * Consumers that hold credentials for this cluster and have a link to it, one for each of their Tenants. A Tenant that is drained, is being deleted
 * or has not proved its key is left out. `linked`: clusters that have a Configuration here.
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
  const endpoint = port === '' ? `${host}:443` : host;
  return new Set([
    endpoint,
    'kubernetes.default:443',
    'kubernetes.default.svc:443',
    'kubernetes.default.svc.cluster.local:443',
  ]);
}

/** What the proxy has observed since it opened. Times as of the clock, in ms. */
export interface LastSeen {
  /** Since when the consumer may come. */
  readonly welcomeSince: number;
  /** Whether it has shown a good token. */
  readonly hasShownToken: boolean;
  /** The last CONNECT without a token, from any source: it names no consumer. */
  readonly tokenless?: { readonly at: number; readonly from: string } | undefined;
}

/** A consumer that sends tokens has sent a valid one within this time, even if its first attempts failed. */
export const tokenGraceMs = 30_000;

/**
 * The conditions of an in-band Tenant after what was observed. `welcome`: it may use the proxy. A CONNECT without a token names no consumer, and its
 * source address does not prove a link: the only evidence against a consumer is that it sends no token while such CONNECTs go on.
 */
export function tokenConditions(
  { spec, status }: Tenant,
  welcome: boolean,
  seen: LastSeen | undefined,
  nowMs: number,
): readonly Condition[] {
  const type = tenantConditionType.inBandToken;
  const known = status?.conditions as readonly Condition[] | undefined;
  if (!welcome || seen?.hasShownToken) return removeCondition(known, type);
  const { tokenless, welcomeSince = nowMs } = seen ?? {};
  const isReported = known?.some((one) => one.type === type);
  if (isReported || tokenless === undefined || tokenless.at < welcomeSince + tokenGraceMs) return known ?? [];
  const message = `consumer ${spec.clusterID} is to come through the link and has shown no good token, while CONNECTs without a token are refused with 407 (the last from ${tokenless.from}). Liqo makes no tokens: peer a consumer that runs it without --in-band, or give it a proxy of your own with --proxy-url. Of one that runs Isthmus, the log of this agent says why its tokens are refused`;
  return setCondition(known, { type, status: 'False', reason: 'NoToken', message }, nowMs);
}

/**
 * Whether a consumer's proxyURL is its view of `exposed`, the address that this cluster's proxy was given. The consumer chooses the range; the host
 * part of the address stays the same.
 */
export function leadsHere(proxyURL: string | undefined, exposed: Ip | undefined): boolean {
  const { ip, cidr } = exposed?.status ?? {};
  const [own, range] = [parseAddress(ip ?? ''), parseCidr(cidr ?? '')];
  if (!proxyURL || own === undefined || range === undefined || !URL.canParse(proxyURL)) return false;
  const { hostname, port } = new URL(proxyURL);
  const called = parseAddress(hostname);
  const size = sizeOf(range.length);
  return port === String(networkPort.apiServerProxy) && called !== undefined && called % size === own % size;
}
