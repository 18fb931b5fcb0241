/** Services: same ports and selector; addresses and node ports are the provider's to choose (reference 5.3). */
import { type Service, services } from '#shared/domain/core-kinds.ts';
import { annotation } from '#shared/domain/liqo-keys.ts';
import { isSet } from '../model/policy.ts';
import { type OutgoingKind, picked, sameName, withoutStatus } from './kind.ts';

type Spec = NonNullable<Service['spec']>;
type Port = NonNullable<Spec['ports']>[number];

const copied = [
  'type',
  'selector',
  'externalName',
  'allocateLoadBalancerNodePorts',
  'externalTrafficPolicy',
  'internalTrafficPolicy',
  'ipFamilyPolicy',
  'loadBalancerSourceRanges',
  'publishNotReadyAddresses',
  'sessionAffinity',
  'sessionAffinityConfig',
] as const satisfies readonly (keyof Spec)[];

const headless = 'None';
const isHeadless = (spec: { clusterIP?: string } | undefined): boolean => spec?.clusterIP === headless;

function portOf(port: Port, forced: boolean): Partial<Port> {
  const kept = picked(port, ['name', 'port', 'targetPort', 'protocol', 'appProtocol']);
  return forced && port.nodePort ? { ...kept, nodePort: port.nodePort } : kept;
}

export const service: OutgoingKind<Service> = {
  name: 'service',
  local: services,
  remote: services,
  prune: withoutStatus,
  isPartial: false,
  ...sameName,
  isExcluded: ({ metadata }) => metadata.namespace === 'default' && metadata.name === 'kubernetes',
  copy({ metadata, spec }, { shape }) {
    const forced = isSet(metadata.annotations, annotation.forceRemoteNodePort);
    const balanced = spec?.type === 'LoadBalancer' && shape.loadBalancerClass !== undefined;
    return {
      content: {
        spec: {
          ...picked(spec, copied),
          ...(isHeadless(spec) ? { clusterIP: headless } : {}),
          ...(spec?.ports ? { ports: spec.ports.map((port) => portOf(port, forced)) } : {}),
          ...(balanced ? { loadBalancerClass: shape.loadBalancerClass } : {}),
        },
      },
    };
  },
  mustReplace(have, want) {
    const spec = want.spec as Spec;
    if (have.spec?.type === 'ExternalName' || spec.type === 'ExternalName') return false;
    const classes = [have.spec, spec].map((one) => (one?.type === 'LoadBalancer' ? one.loadBalancerClass : undefined));
    const bothBalanced = have.spec?.type === 'LoadBalancer' && spec.type === 'LoadBalancer';
    return isHeadless(have.spec) !== isHeadless(spec) || (bothBalanced && classes[0] !== classes[1] && !!classes[1]);
  },
};
