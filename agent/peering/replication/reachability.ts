/**
 * Whether a provider can still be asked to take copies back once the credentials for it go. An in-band consumer (docs/in-band.md) loses its path to
 * the provider with its own gateway, and with its Tenant: the proxy then refuses its connections. Copies that are left go with the Tenant. Pure.
 */
import { isWithin } from '#shared/domain/cidr.ts';
import type { KubeObject, Secret } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';

/** This long after the end of its credentials, a provider that does not answer counts as having closed its proxy. */
const patienceMs = 15_000;

function proxyHost(secret: Secret): string | undefined {
  const kubeconfig = Buffer.from(secret.data?.kubeconfig ?? '', 'base64').toString();
  const [, url = ''] = /["']?\bproxy-url["']?\s*:\s*["']?([^"'\s,}]+)/.exec(kubeconfig) ?? [];
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** The proxy of credentials that lead through the link: an address in what this cluster calls the ranges of the peer. `configurations`: the peer's. */
export function proxyInLink(secret: Secret, configurations: readonly Configuration[]): string | undefined {
  const host = proxyHost(secret);
  const ranges = configurations.flatMap(({ status }) => {
    const { pod = [], external = [] } = status?.remote?.cidr ?? {};
    return [...pod, ...external];
  });
  return host !== undefined && ranges.length > 0 && isWithin(`${host}/32`, ranges) ? host : undefined;
}

export interface ReachabilityFacts {
  /** Control-plane credentials of a provider. */
  readonly credentials: Secret;
  /** Of that provider, as far as they are still there. */
  readonly configurations: readonly Configuration[];
  /** GatewayServers and GatewayClients of that provider. */
  readonly gateways: readonly KubeObject[];
}

const isStaying = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined;

/** Its mark counts, too: of what was known while there was a Configuration, nothing else is left. */
function isThroughLink({ credentials, configurations }: ReachabilityFacts): boolean {
  const marked = credentials.metadata.annotations?.[isthmusAnnotation.proxyInLink];
  return (
    proxyInLink(credentials, configurations) !== undefined ||
    (marked !== undefined && marked === proxyHost(credentials))
  );
}

/** Credentials and link were both ended here: no request will ever arrive, so nothing is worth waiting for. */
export const isUnreachable = (facts: ReachabilityFacts): boolean =>
  !isStaying(facts.credentials) &&
  !(facts.configurations.some(isStaying) && facts.gateways.some(isStaying)) &&
  isThroughLink(facts);

/** The provider has been silent for long enough after the end of the credentials to have closed its proxy for good. */
export function hasLostAccess(facts: ReachabilityFacts, nowMs: number): boolean {
  const { deletionTimestamp } = facts.credentials.metadata;
  return deletionTimestamp !== undefined && nowMs - Date.parse(deletionTimestamp) >= patienceMs && isThroughLink(facts);
}
