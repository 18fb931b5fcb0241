/** What becomes of one IP object: its status, and the Service by which it is published. Pure. */
import type { Grant } from '#agent/network/ipam/ipam.ts';
import type { Applied } from '#kube/model/types.ts';
import { type Condition, setCondition } from '#kube/writes/conditions.ts';
import type { Service } from '#shared/domain/core-kinds.ts';
import type { KubeObject, OwnerReference, ResourceType } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { Ip, IpStatus } from '#shared/schema/liqo/ip.ts';

export interface EndpointSlice extends KubeObject {
  readonly addressType: string;
  readonly endpoints: readonly { readonly addresses: readonly string[]; readonly conditions?: object }[];
  readonly ports?: readonly { readonly name?: string; readonly port: number; readonly protocol?: string }[];
}
export const endpointSlices: ResourceType<EndpointSlice> = {
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
};

/** An address once in the status never changes: the schema forbids it, and peers have it. */
export function settleGrant(ip: Ip, grant: Grant): Grant {
  const known = ip.status?.ip;
  if (known === undefined || 'refused' in grant || grant.granted === known) return grant;
  const message = `${known}, which this object was given, belongs to another one now; delete it and create it again`;
  return { refused: { reason: 'RangeTaken', message } };
}

export function ipStatus(ip: Ip, grant: Grant, cidr: string | undefined, nowMs: number): IpStatus {
  const refused = 'refused' in grant ? grant.refused : undefined;
  const input = {
    type: 'Granted',
    status: refused ? 'False' : 'True',
    reason: refused?.reason ?? 'Granted',
    message: refused?.message ?? '',
  } as const;
  const conditions = [...setCondition(ip.status?.conditions as readonly Condition[] | undefined, input, nowMs)];
  if ('refused' in grant) return { ...ip.status, conditions };
  return { ip: grant.granted, ...((ip.status?.cidr ?? cidr) ? { cidr: ip.status?.cidr ?? cidr } : {}), conditions };
}

/** Without a selector, so that only the EndpointSlice decides where it leads. */
export function buildService(ip: Ip, owner: OwnerReference): Applied<Service> | undefined {
  const template = ip.spec.serviceTemplate;
  if (template === undefined) return undefined;
  const { selector: _, ...spec } = template.spec ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: ip.metadata.name,
      namespace: ip.metadata.namespace ?? '',
      labels: { ...template.metadata?.labels, [label.managed]: 'true' },
      ...(template.metadata?.annotations ? { annotations: { ...template.metadata.annotations } } : {}),
      ownerReferences: [owner],
    },
    spec,
  } as Applied<Service>;
}

export function buildEndpoints(ip: Ip, owner: OwnerReference, address: string): Applied<EndpointSlice> {
  const ports = (ip.spec.serviceTemplate?.spec?.ports ?? []).map(({ name, port, targetPort, protocol }) => ({
    ...(name === undefined ? {} : { name }),
    port: typeof targetPort === 'number' ? targetPort : port,
    protocol: protocol ?? 'TCP',
  }));
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: ip.metadata.name,
      namespace: ip.metadata.namespace ?? '',
      labels: {
        [label.managed]: 'true',
        'kubernetes.io/service-name': ip.metadata.name,
        'endpointslice.kubernetes.io/managed-by': 'isthmus',
      },
      ownerReferences: [owner],
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports,
  };
}
