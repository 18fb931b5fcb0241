/** Which API server and proxy a provider may announce. The agent connects to both, from inside of this cluster and with its credentials. Pure. */
import net from 'node:net';
import { contains } from '#shared/domain/cidr.ts';
import type { Namespace } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';

const privateRanges: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '198.18.0.0/15',
];

/** Names that only this cluster or this network resolves. */
const isLocalName = (name: string): boolean =>
  !name.includes('.') || /\.(svc|local|localhost|internal|lan|home\.arpa)$/.test(name);

/** IPv6 only where it is global unicast: all else, mapped IPv4 as well, counts as private. */
function isPrivate(hostname: string): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (net.isIPv4(host)) return privateRanges.some((range) => contains(range, host));
  return net.isIPv6(host) ? !/^[23]/.test(host) : isLocalName(host);
}

const accepts = ({ metadata }: Pick<Namespace, 'metadata'>, what: 'http' | 'private-proxy'): boolean =>
  (metadata.annotations?.[isthmusAnnotation.acceptedEndpoints] ?? '').split(',').some((one) => one.trim() === what);

/**
 * Why the agent does not connect; undefined: it does. `namespace` is that of the Identity. A private proxy is one by which the agent would reach hosts of this
 * cluster, unless it is an address of the provider's in the link.
 */
export function refusedEndpoint(
  { spec }: Identity,
  namespace: Pick<Namespace, 'metadata'>,
  configuration: Configuration | undefined,
): string | undefined {
  const { apiServer = '', proxyURL } = spec.authParams;
  const set = (value: string): string =>
    `annotate namespace ${namespace.metadata.name} with ${isthmusAnnotation.acceptedEndpoints}=${value} to connect all the same`;
  if (apiServer !== '' && !/^https:/i.test(apiServer) && !accepts(namespace, 'http'))
    return `spec.authParams.apiServer is ${apiServer}: accepted is https; ${set('http')}`;
  if (!proxyURL || accepts(namespace, 'private-proxy')) return undefined;
  if (!URL.canParse(proxyURL)) return `spec.authParams.proxyURL is ${JSON.stringify(proxyURL)}: accepted is a URL`;
  const { hostname } = new URL(proxyURL);
  const views = configuration?.status?.remote?.cidr;
  const isInLink = [...(views?.pod ?? []), ...(views?.external ?? [])].some((range) => contains(range, hostname));
  if (isInLink || !isPrivate(hostname)) return undefined;
  return `spec.authParams.proxyURL is ${proxyURL}, which is private: accepted is an address in the ranges of ${spec.clusterID} as this cluster calls them, once there is a link, or a public one; ${set('private-proxy')}`;
}
