/** Networks of the installation: the ranges that IPAM must know before it grants anything (docs/design/networking.md#which-ranges-does-an-installation-have). Pure. */
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import {
  type NetworkType,
  networkAnnotation,
  networkLabel,
  networkName,
  networkType,
} from '#shared/domain/network-keys.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { installLabel } from './install-label.ts';
import type { ClusterRanges } from './ranges.ts';

interface Wanted {
  readonly name: string;
  readonly type: NetworkType;
  readonly cidr: string;
  /** Granted as asked, or not at all. */
  readonly exact: boolean;
  /** May overlap other shared ones. */
  readonly shared: boolean;
  readonly preAllocated?: number;
}

const network = ({ name, type, cidr, exact, shared, preAllocated }: Wanted): Network => ({
  apiVersion: apiVersionOf(networkKinds.networks),
  kind: networkKinds.networks.kind,
  metadata: {
    name,
    namespace: systemNamespace,
    labels: {
      ...installLabel,
      [networkLabel.networkType]: type,
      ...(exact && { [networkLabel.networkNotRemapped]: 'true' }),
      ...(shared && { [networkLabel.networkShared]: 'true' }),
    },
    annotations: { [networkAnnotation.preinstalled]: 'true' },
  },
  spec: { cidr, ...(preAllocated !== undefined && { preAllocated }) },
});

export function networkManifests(ranges: ClusterRanges): Network[] {
  const shared = { exact: true, shared: true };
  const [onlyPods] = ranges.podCidrs;
  return [
    ...ranges.podCidrs.map((cidr) => ({
      ...shared,
      name:
        ranges.podCidrs.length === 1 && cidr === onlyPods ? 'pod-cidr' : `pod-cidr-${cidr.replaceAll(/[./]/g, '-')}`,
      type: networkType.pod,
      cidr,
    })),
    { ...shared, name: 'service-cidr', type: networkType.service, cidr: ranges.serviceCidr },
    ...ranges.reservedSubnets.map((cidr) => ({
      ...shared,
      name: networkName.reservedNetwork(cidr),
      type: networkType.reserved,
      cidr,
    })),
    // Its first address stands for senders that have none of their own.
    {
      name: 'external-cidr',
      type: networkType.external,
      cidr: ranges.externalCidr,
      exact: ranges.fixed.external,
      shared: false,
      preAllocated: 1,
    },
    {
      name: 'internal-cidr',
      type: networkType.internal,
      cidr: ranges.internalCidr,
      exact: ranges.fixed.internal,
      shared: false,
    },
  ].map(network);
}
