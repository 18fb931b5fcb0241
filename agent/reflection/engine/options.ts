/**
 * What is reflected, and how, through one virtual node: its VkOptionsTemplate, then the arguments of its own template (as Liqo's webhook and
 * `liqoctl` write them), then its offloading patch and classes. Pure.
 */
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import type { VkOptionsTemplate } from '#shared/schema/liqo/vk-options-template.ts';
import type { ReflectorName, Shape } from '../kinds/kind.ts';
import type { PolicyType } from '../model/policy.ts';

export interface ReflectorOptions {
  /** 0: this kind is not looked at; copies that are there stay. */
  readonly workers: number;
  /** A PeeringPolicy of this cluster keeps this kind here: copies that are there are removed. */
  readonly forbidden?: boolean;
  readonly type: PolicyType;
}

export interface ReflectionOptions extends Shape {
  readonly kinds: Readonly<Record<ReflectorName, ReflectorOptions>>;
  /** Whether offloaded pods may use this cluster's API server. */
  readonly apiSupport: boolean;
  /** False (`--disable-ip-reflection`): addresses of neither side cross. */
  readonly addresses: boolean;
}

const kind = (workers: number): ReflectorOptions => ({ workers, type: 'DenyList' });
/** A provider may be 80 ms away: ten writes under way are a hundred a second then, and a thousand changes after an outage take ten. */
const defaults: Record<ReflectorName, ReflectorOptions> = {
  service: kind(10),
  endpointslice: kind(10),
  ingress: kind(10),
  configmap: kind(10),
  secret: kind(10),
  // Every pod waits for its token.
  serviceaccount: kind(10),
  event: kind(3),
};
export const reflectorNames = Object.keys(defaults) as readonly ReflectorName[];

/** Of the installation without a template: what load balancers and clouds write on the objects of one cluster. */
export const defaultAnnotationsNotReflected: readonly string[] = [
  'cloud.google.com/neg',
  'cloud.google.com/neg-status',
  'kubernetes.digitalocean.com/load-balancer-id',
  'ingress.kubernetes.io/backends',
  'ingress.kubernetes.io/forwarding-rule',
  'ingress.kubernetes.io/target-proxy',
  'ingress.kubernetes.io/url-map',
  'metallb.universe.tf/address-pool',
  'metallb.universe.tf/ip-allocated-from-pool',
  'metallb.universe.tf/loadBalancerIPs',
  'loadbalancer.openstack.org/load-balancer-id',
];

/** `--name=value` and `--name` of the virtual kubelet's arguments. */
function flagsOf(args: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    args.flatMap((arg) => {
      const [, name, value] = /^--([a-z-]+)(?:=(.*))?$/.exec(arg) ?? [];
      return name === undefined ? [] : [[name, value ?? 'true'] as const];
    }),
  );
}

function argumentsOf({ spec }: VirtualNode, template: VkOptionsTemplate | undefined): ReadonlyMap<string, string> {
  const containers = spec.template?.spec?.template?.spec?.containers ?? [];
  const own = containers.flatMap(({ args }) => (args ?? []) as string[]);
  return new Map([...flagsOf(template?.spec.extraArgs ?? []), ...flagsOf(own)]);
}

/** `CustomLiqo` says that the kind has rules of its own, which it has anyway. */
const policyOf = (text: string | undefined): PolicyType | undefined =>
  text === 'DenyList' || text === 'AllowList' ? text : undefined;

function kindOptions(
  name: ReflectorName,
  template: VkOptionsTemplate | undefined,
  flags: ReadonlyMap<string, string>,
): ReflectorOptions {
  const configured = template?.spec.reflectorsConfig?.[name];
  const workers = Number(flags.get(`${name}-reflection-workers`) ?? configured?.workers);
  return {
    workers: Number.isInteger(workers) && workers >= 0 ? workers : defaults[name].workers,
    type: policyOf(flags.get(`${name}-reflection-type`)) ?? policyOf(configured?.type) ?? defaults[name].type,
  };
}

const union = (...lists: readonly (readonly string[] | undefined)[]): string[] =>
  [...new Set(lists.flatMap((list) => list ?? []))].sort();

/** The one marked as default, else the first. */
const chosen = <T extends { readonly default?: boolean | undefined }>(
  classes: readonly T[] | undefined,
): T | undefined => classes?.find((one) => one.default) ?? classes?.[0];

/** `allowed`: kinds that the PeeringPolicies let go to this provider. Slices follow the policy of Services; without addresses that mean something there they are not reflected at all. */
export function reflectionOptions(
  virtualNode: VirtualNode,
  template: VkOptionsTemplate | undefined,
  allowed: ReadonlySet<string> = new Set(reflectorNames),
): ReflectionOptions {
  const { offloadingPatch, ingressClasses, loadBalancerClasses } = virtualNode.spec;
  const flags = argumentsOf(virtualNode, template);
  const kinds = Object.fromEntries(
    reflectorNames.map((name) => [
      name,
      { ...kindOptions(name, template, flags), ...(!allowed.has(name) && { forbidden: true }) },
    ]),
  ) as Record<ReflectorName, ReflectorOptions>;
  const noAddresses = (flags.get('disable-ip-reflection') ?? 'false') !== 'false';
  const slices = {
    ...kinds.endpointslice,
    type: kinds.service.type,
    ...(noAddresses && { workers: 0 }),
  };
  return {
    kinds: { ...kinds, endpointslice: slices },
    labelsNotReflected: union(template?.spec.labelsNotReflected, offloadingPatch?.labelsNotReflected),
    annotationsNotReflected: union(
      template ? template.spec.annotationsNotReflected : defaultAnnotationsNotReflected,
      offloadingPatch?.annotationsNotReflected,
    ),
    ingressClass: chosen(ingressClasses)?.ingressClassName,
    loadBalancerClass: chosen(loadBalancerClasses)?.loadBalancerClassName,
    addresses: !noAddresses,
    apiSupport: (flags.get('enable-apiserver-support') ?? 'true') !== 'false',
  };
}
