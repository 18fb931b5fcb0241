/**
 * EndpointSlices become ShadowEndpointSlices: endpoints that are not at the provider anyway, with addresses that it can translate into its own
 * view (reference 5.4). Pods here keep their real address; everything else goes by the address that an IP object grants it.
 */
import { type EndpointSlice, endpointSlices } from '#shared/domain/core-kinds.ts';
import { networkAnnotation } from '#shared/domain/network-keys.ts';
import { type ShadowEndpointSlice, shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { isSet } from '../model/policy.ts';
import { type Context, type NodeKind, type OutgoingKind, picked, sameName } from './kind.ts';

type Endpoint = NonNullable<EndpointSlice['endpoints']>[number];

const serviceNameLabel = 'kubernetes.io/service-name';
export const sliceManagerLabel = 'endpointslice.kubernetes.io/managed-by';
export const sliceManager = 'endpointslice.reflection.liqo.io';
/** What the API server takes for all annotations of an object together. */
const annotationBytes = 256 * 1024;
/** Written by the endpoint controller at each change; meaningless to any other reader. */
const triggerTime = 'endpoints.kubernetes.io/last-change-trigger-time';

export const sliceIndex = { service: 'service', address: 'address', node: 'node' } as const;

export const serviceNameOf = ({ metadata }: EndpointSlice): string | undefined => metadata.labels?.[serviceNameLabel];

interface Exported {
  readonly endpoint: object;
  /** Of pods at a third cluster, to be reached there without passing through this one. */
  readonly direct?: { readonly provider: string; readonly addresses: readonly string[] };
}

function exportedEndpoint(
  endpoint: Endpoint,
  node: NodeKind,
  slice: EndpointSlice,
  direct: boolean,
  { consumer, around }: Context,
): Exported | { readonly missing: string } {
  const isDirect = direct && node.is === 'virtual';
  const addresses: string[] = [];
  for (const address of endpoint.addresses) {
    const told = isDirect
      ? around.atHome(node.provider, address)
      : slice.addressType === 'IPv4'
        ? around.exported(slice.metadata.namespace ?? '', address)
        : address;
    if (told === undefined) return { missing: address };
    addresses.push(told);
  }
  const { targetRef } = endpoint;
  return {
    endpoint: {
      addresses,
      ...(endpoint.conditions?.ready === undefined ? {} : { conditions: { ready: endpoint.conditions.ready } }),
      ...picked(endpoint, ['hostname', 'zone', 'hints']),
      nodeName: consumer,
      ...(targetRef ? { targetRef: { ...targetRef, kind: `Remote${targetRef.kind ?? ''}` } } : {}),
    },
    ...(isDirect ? { direct: { provider: node.provider, addresses } } : {}),
  };
}

function clusterAddresses(exported: readonly Exported[]): Record<string, string[]> {
  const all: Record<string, string[]> = {};
  for (const { direct } of exported) {
    if (direct) all[direct.provider] = [...(all[direct.provider] ?? []), ...direct.addresses];
  }
  return all;
}

function isAbsentThere(node: NodeKind, { provider }: Context): boolean {
  return node.is === 'physical' || (node.is === 'virtual' && node.provider !== provider);
}

export const endpointSlice: OutgoingKind<EndpointSlice, ShadowEndpointSlice> = {
  name: 'endpointslice',
  local: endpointSlices,
  remote: shadowEndpointSlices,
  prune: (object) => object,
  isPartial: false,
  indexes: {
    [sliceIndex.service]: (slice) => [serviceNameOf(slice) ?? ''],
    [sliceIndex.address]: ({ endpoints }) => [...new Set((endpoints ?? []).flatMap(({ addresses }) => addresses))],
    [sliceIndex.node]: ({ endpoints }) => [...new Set((endpoints ?? []).map(({ nodeName }) => nodeName ?? ''))],
  },
  ...sameName,
  isExcluded: (slice) => slice.metadata.namespace === 'default' && serviceNameOf(slice) === 'kubernetes',
  copy(slice, context) {
    const namespace = slice.metadata.namespace ?? '';
    const owner = context.around.service(namespace, serviceNameOf(slice) ?? '');
    const direct = isSet(owner?.metadata.annotations, networkAnnotation.useDirectConnections);
    const exported: Exported[] = [];
    for (const endpoint of slice.endpoints ?? []) {
      const node: NodeKind = endpoint.nodeName ? context.around.node(endpoint.nodeName) : { is: 'physical' };
      if (!isAbsentThere(node, context)) continue;
      const one = exportedEndpoint(endpoint, node, slice, direct, context);
      if ('missing' in one) {
        if (node.is === 'virtual') {
          const remedy = `it is made when this cluster has links to both; see IPs and Configurations`;
          return {
            awaits: `pod address ${one.missing} at cluster ${node.provider} has no IP object by which cluster ${context.provider} reaches it; ${remedy}`,
          };
        }
        const remedy = `create an IP object with spec.ip ${one.missing} in namespace ${namespace}`;
        return {
          refused: `address ${one.missing} is not in this cluster's pod range and no IP object gives it an address for peers; ${remedy}`,
        };
      }
      exported.push(one);
    }
    const data = JSON.stringify({ clusterAddresses: clusterAddresses(exported) });
    if (data.length > annotationBytes)
      return {
        refused: `its direct connections take ${data.length} bytes as an annotation; the limit is ${annotationBytes}`,
      };
    return {
      content: {
        spec: {
          template: {
            endpoints: exported.map(({ endpoint }) => endpoint),
            ...(slice.ports ? { ports: slice.ports } : {}),
            addressType: slice.addressType,
          },
        },
      },
      labels: { [sliceManagerLabel]: sliceManager },
      ...(exported.some(({ direct }) => direct)
        ? { annotations: { [networkAnnotation.directConnectionsData]: data } }
        : {}),
      without: [triggerTime, networkAnnotation.directConnectionsData],
    };
  },
  mustReplace: () => false,
};
