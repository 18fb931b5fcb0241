/** The objects by which consumers find the proxy in front of this API server, and the list of consumers that may use it. Pure. */

import { credentialOf } from '#agent/model/peer-credentials.ts';
import type { EndpointSlice } from '#agent/network/ranges/ip/decide.ts';
import { doorOf } from '#agent/peering/credentials/front-door.ts';
import { readPublicKey } from '#agent/pki/cluster-keys.ts';
import type { Applied } from '#kube/model/types.ts';
import { type Condition, removeCondition, setCondition } from '#kube/writes/conditions.ts';
import { containsRange, parseAddress, parseCidr, sizeOf } from '#shared/domain/cidr.ts';
import type { Service } from '#shared/domain/core-kinds.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import { unmapped } from '#shared/domain/socket-address.ts';
import type { AuthParams } from '#shared/schema/definition/fields.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { type Tenant, tenantConditionType } from '#shared/schema/liqo/tenant.ts';

export const proxyServiceName = 'isthmus-api-server-proxy';
const portName = 'proxy';
const doorPortName = 'front-door';

/** Without a selector: of all replicas only the leader serves, so that a token is accepted once. */
export const buildProxyService = (namespace: string): Applied<Service> => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: proxyServiceName, namespace, labels: { [label.managed]: 'true' } },
  spec: {
    ports: [
      { name: portName, port: networkPort.apiServerProxy, protocol: 'TCP' },
      { name: doorPortName, port: networkPort.frontDoor, protocol: 'TCP' },
    ],
  },
});

/** `at`: where the listeners are. While there is no proxy, neither is this. */
export const buildProxyEndpoints = (
  namespace: string,
  at: { readonly ip: string; readonly port: number; readonly doorPort?: number | undefined },
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
  ports: [
    { name: portName, port: at.port, protocol: 'TCP' },
    ...(at.doorPort === undefined ? [] : [{ name: doorPortName, port: at.doorPort, protocol: 'TCP' }]),
  ],
});

export interface ProxyUser {
  readonly consumer: string;
  /** As its Tenant has it. */
  readonly publicKey: string;
  /** Whether it was told to come to the API server this way; any other comes for its certificate alone. */
  readonly isInBand: boolean;
  /** What it logs in with: its certificate in PEM, or a token that is sealed to it. */
  readonly credential: string | undefined;
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
    return isWelcome && publicKey
      ? [{ consumer, publicKey, isInBand, credential: handedOut(status.authParams ?? {}) }]
      : [];
  });

function handedOut(authParams: AuthParams): string | undefined {
  const credential = credentialOf(authParams);
  return credential?.kind === 'token' ? credential.sealed : credential?.pem;
}

/** On the Tenant: the provider's administrator lets its consumer in by the addresses of its link. Admission accepts `true` and `false` only. */
export const needsNoToken = ({ metadata }: Tenant): boolean =>
  metadata.annotations?.[isthmusAnnotation.inBandWithoutToken] === 'true';

/** What this cluster calls the addresses behind the link of a Tenant. Of Configurations elsewhere nothing is taken: others may write those. */
export const linkRanges = ({ metadata, spec }: Tenant, configurations: readonly Configuration[]): readonly string[] =>
  configurations
    .filter(
      (one) =>
        one.metadata.deletionTimestamp === undefined &&
        one.metadata.namespace === metadata.namespace &&
        one.metadata.labels?.[label.remoteClusterId] === spec.clusterID,
    )
    .flatMap(({ status }) => [...(status?.remote?.cidr.pod ?? []), ...(status?.remote?.cidr.external ?? [])]);

/** The consumer that may come from `from` without a token: in-band, welcome, let in by its Tenant, and the only such one with that address. */
export function consumerAt(
  from: string,
  tenants: readonly Tenant[],
  configurations: readonly Configuration[],
): string | undefined {
  const base = parseAddress(unmapped(from));
  if (base === undefined) return undefined;
  const linked = linkedClusters(configurations);
  const isThere = (cidr: string): boolean => {
    const range = parseCidr(cidr);
    return range !== undefined && containsRange(range, { base, length: 32 });
  };
  const found = new Set(
    tenants
      .filter((tenant) => needsNoToken(tenant) && proxyUsers([tenant], linked).some(({ isInBand }) => isInBand))
      .filter((tenant) => linkRanges(tenant, configurations).some(isThere))
      .map(({ spec }) => spec.clusterID),
  );
  const [only, ...others] = found;
  return others.length === 0 ? only : undefined;
}

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
  /** Whether it has sent a valid token, or connected from an address that lets it in without one. */
  readonly hasCome: boolean;
  /** The last CONNECT that was refused for want of a token, from any source: it names no consumer. */
  readonly tokenless?: { readonly at: number; readonly from: string } | undefined;
}

/** A consumer that sends tokens has sent a valid one within this time, even if its first attempts failed. */
export const tokenGraceMs = 30_000;

/**
 * The conditions of an in-band Tenant after what was observed. `welcome`: it may use the proxy. `ranges`: the addresses from which it needs no token;
 * undefined when it needs one. A refused CONNECT without a token names no consumer, and its source address does not prove a link: the only evidence
 * against a consumer is that it does not get in while such CONNECTs go on.
 */
export function tokenConditions(
  tenant: Tenant,
  welcome: boolean,
  seen: LastSeen | undefined,
  nowMs: number,
  ranges?: readonly string[],
): readonly Condition[] {
  const { spec, status } = tenant;
  const type = tenantConditionType.inBandToken;
  const known = status?.conditions as readonly Condition[] | undefined;
  if (!welcome) return removeCondition(known, type);
  const door = doorOf(tenant);
  if (door !== undefined) {
    const isOpen = 'apiServer' in door;
    const message = isOpen
      ? `consumer ${spec.clusterID} comes to the API server by the front door, ${door.apiServer}, with a certificate of it`
      : `the front door waits for ${door.problem}`;
    return setCondition(
      known,
      { type, status: isOpen ? 'True' : 'False', reason: isOpen ? 'FrontDoor' : 'NoWayToFrontDoor', message },
      nowMs,
    );
  }
  const { tokenless, welcomeSince = nowMs, hasCome = false } = seen ?? {};
  const goesOn = tokenless !== undefined && tokenless.at >= welcomeSince + tokenGraceMs;
  const isFalse = (reason: string): boolean =>
    known?.some((one) => one.type === type && one.status === 'False' && one.reason === reason) ?? false;
  const last = `(the last from ${tokenless?.from})`;
  if (ranges !== undefined) {
    const where = ranges.length > 0 ? ranges.join(', ') : 'none yet: its Configuration has no ranges in its status';
    if (!hasCome && isFalse('NotFromLink')) return known ?? [];
    if (!hasCome && goesOn) {
      const message = `consumer ${spec.clusterID} needs no token from the addresses of its link (${where}), but CONNECTs without a token come from others only ${last} and are refused with 407`;
      return setCondition(known, { type, status: 'False', reason: 'NotFromLink', message }, nowMs);
    }
    const message = `consumer ${spec.clusterID} may CONNECT to the API server without a token from the addresses of its link: ${where}`;
    return setCondition(known, { type, status: 'True', reason: 'NotRequired', message }, nowMs);
  }
  if (!hasCome && isFalse('NoToken')) return known ?? [];
  if (hasCome || !goesOn) return removeCondition(known, type);
  const message = `consumer ${spec.clusterID} is to come through the link and has shown no good token, while CONNECTs without a token are refused with 407 ${last}. Liqo makes no tokens: annotate this Tenant with ${isthmusAnnotation.inBandWithoutToken}=true, or peer a consumer that runs Liqo without --in-band, or give it a proxy of your own with --proxy-url. Of one that runs Isthmus, the log of this agent says why its tokens are refused`;
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
