/** Where the peer can reach a gateway (docs/design/networking.md#where-can-a-gateway-be-reached), or why nowhere yet. Pure. */
import type { Service } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import type { EndpointStatus } from '#shared/schema/liqo/gateway-endpoint.ts';

export interface EndpointFacts {
  readonly service: Service | undefined;
  /** Without virtual nodes. */
  readonly nodes: readonly Node[];
  /** That runs the active gateway pod. */
  readonly activeNode: string | undefined;
  /** Stands for everything else: `address:port`, several with commas. */
  readonly literal: string | undefined;
}

export interface Trouble {
  readonly reason: string;
  readonly message: string;
}

export interface Endpoint {
  readonly endpoint: EndpointStatus;
  /** `address:port`, the best first; more than the endpoint can say, whose addresses share one port. */
  readonly candidates: readonly string[];
}

/** Enough to survive the loss of some nodes, and short enough to read in a status. */
const mostAddresses = 8;
/** Best class first. */
const addressClasses = ['ExternalDNS', 'ExternalIP', 'InternalDNS', 'InternalIP', 'Hostname'];

export const candidateOf = (address: string, port: number): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;

const endpointOf = (addresses: readonly string[], port: number, more: readonly string[] = []): Endpoint => ({
  endpoint: { addresses: [...addresses], port, protocol: 'UDP' },
  candidates: [...new Set([...addresses.map((address) => candidateOf(address, port)), ...more])],
});

/** `1.2.3.4:5`, `name:5`, `[::1]:5`. Undefined: no such thing. */
export function parseCandidate(text: string): { readonly address: string; readonly port: number } | undefined {
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)):(\d{1,5})$/.exec(text.trim());
  const port = Number(found?.[3]);
  const address = found?.[1] ?? found?.[2];
  return address === undefined || port < 1 || port > 65_535 ? undefined : { address, port };
}

export function discoverEndpoint(facts: EndpointFacts): Endpoint | Trouble {
  const { service, literal } = facts;
  if (literal !== undefined) return fromLiteral(literal);
  if (service === undefined) return { reason: 'ServiceMissing', message: 'its Service is not there yet' };
  switch (service.spec?.type) {
    case 'LoadBalancer':
      return fromLoadBalancer(service, facts);
    case 'NodePort':
      return fromNodePort(service, facts);
    case 'ExternalName':
      return {
        reason: 'ServiceTypeWithoutEndpoint',
        message: 'a Service of type ExternalName leads no peer here; set NodePort, LoadBalancer or ClusterIP',
      };
    default:
      return fromClusterIp(service);
  }
}

function fromLiteral(literal: string): Endpoint | Trouble {
  const parts = literal.split(',').filter((part) => part.trim() !== '');
  const parsed = parts.map(parseCandidate);
  const [first] = parsed;
  const wrong = parts[parsed.indexOf(undefined)];
  if (first === undefined || wrong !== undefined) {
    const message = `${JSON.stringify(wrong ?? literal)} is no endpoint; accepted: address:port, several with commas, such as 203.0.113.7:51840`;
    return { reason: 'EndpointInvalid', message };
  }
  const all = parsed.flatMap((one) => one ?? []);
  const same = all.filter(({ port }) => port === first.port).map(({ address }) => address);
  const candidates = all.map(({ address, port }) => candidateOf(address, port));
  return { ...endpointOf(same, first.port), candidates };
}

const udpPort = (service: Service) =>
  service.spec?.ports?.find(({ protocol }) => protocol === 'UDP') ?? service.spec?.ports?.[0];
/** Undefined for a Service that has none (yet). */
export const nodePortOf = (service: Service | undefined): number | undefined =>
  (service === undefined ? undefined : udpPort(service)?.nodePort) || undefined;
const portOf = (service: Service): number => udpPort(service)?.port ?? networkPort.wireGuard;

function fromClusterIp(service: Service): Endpoint | Trouble {
  const { clusterIPs, clusterIP } = service.spec ?? {};
  const addresses = (clusterIPs ?? [clusterIP]).filter(
    (ip): ip is string => ip !== undefined && !['', 'None'].includes(ip),
  );
  return addresses.length === 0
    ? { reason: 'NoClusterIP', message: `Service ${service.metadata.name} has no cluster IP` }
    : endpointOf(addresses, portOf(service));
}

/** The nodes behind the load balancer stand in for it when it does not answer: as candidates only. */
function fromLoadBalancer(service: Service, facts: EndpointFacts): Endpoint | Trouble {
  const ingress = service.status?.loadBalancer?.ingress ?? [];
  const addresses = ingress.flatMap(({ ip, hostname }) => ip || hostname || []);
  if (addresses.length > 0) {
    const nodePort = nodePortOf(service);
    const spare = nodePort === undefined ? [] : nodeAddresses(service, facts).map((one) => candidateOf(one, nodePort));
    return endpointOf(addresses, portOf(service), spare);
  }
  return {
    reason: 'NoLoadBalancerAddress',
    message: `Service ${service.metadata.name} of type LoadBalancer has no address yet; if this cluster has no load balancer, use service type NodePort`,
  };
}

function fromNodePort(service: Service, facts: EndpointFacts): Endpoint | Trouble {
  const nodePort = nodePortOf(service);
  if (nodePort === undefined)
    return { reason: 'NoNodePort', message: `Service ${service.metadata.name} has no node port yet` };
  const addresses = nodeAddresses(service, facts);
  if (addresses.length > 0) return endpointOf(addresses, nodePort);
  const isLocal = service.spec?.externalTrafficPolicy === 'Local';
  return isLocal && facts.activeNode === undefined
    ? {
        reason: 'NoActivePod',
        message:
          'with externalTrafficPolicy Local only the node of the active pod answers, and no gateway pod is active',
      }
    : {
        reason: 'NoReadyNode',
        message: 'no node that could take packets for the node port is Ready and has an address',
      };
}

/** Every ready node answers at a node port; the one that runs the active pod does so without a further hop. */
function nodeAddresses(service: Service, { nodes, activeNode }: EndpointFacts): string[] {
  const isLocal = service.spec?.externalTrafficPolicy === 'Local';
  const usable = nodes
    .filter((node) => isReady(node) && (!isLocal || node.metadata.name === activeNode))
    .sort((a, b) => rank(a, activeNode) - rank(b, activeNode) || (a.metadata.name < b.metadata.name ? -1 : 1));
  return [...new Set(usable.flatMap(bestAddresses))].slice(0, mostAddresses);
}

const rank = (node: Node, activeNode: string | undefined): number => (node.metadata.name === activeNode ? 0 : 1);
const isReady = ({ status, metadata }: Node): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false);

function bestAddresses({ status }: Node): string[] {
  const known = status?.addresses?.filter(({ address }) => address !== '') ?? [];
  const best = addressClasses.find((type) => known.some((one) => one.type === type));
  return known.filter(({ type }) => type === best).map(({ address }) => address);
}
