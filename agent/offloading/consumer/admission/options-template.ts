/**
 * Which VkOptionsTemplates are accepted. Fields that only shape Liqo's Deployment of a virtual kubelet pass with a warning, so that manifests
 * written for Liqo keep working; what would be silently ignored and change what is offloaded is refused. Pure.
 */
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { reflectedResources, type VkOptionsTemplate } from '#shared/schema/liqo/vk-options-template.ts';

const known: ReadonlySet<string> = new Set(reflectedResources);
/** Reflected by rules of their own, for any list type. */
const ownRules: ReadonlySet<string> = new Set(['pod', 'serviceaccount', 'persistentvolumeclaim']);

const meaningful = /^--(enable-apiserver-support|disable-ip-reflection|[a-z]+-reflection-(workers|type))(=|$)/;
/** Of Liqo's virtual kubelet, without any effect here, and without any harm. */
const harmless =
  /^--(certificate-type|listen-port|enable-profiling|resync-period|node-(lease-duration|ping-interval|ping-timeout)|metrics-(enabled|address)|vk-lease-[a-z-]+|v)(=|$)/;

const idle = {
  replicas: 'virtual nodes run in the agent, which has its own replicas',
  resources: 'virtual nodes run in the agent: set those of the agent',
  extraAnnotations: 'there are no pods of a virtual kubelet',
  extraLabels: 'there are no pods of a virtual kubelet',
  imagePullSecrets: 'there is no image of a virtual kubelet',
  pullPolicy: 'there is no image of a virtual kubelet',
  tolerations: 'there are no pods of a virtual kubelet',
  metricsAddress: 'the agent serves its metrics itself',
} as const;

export function validateOptions({ spec }: VkOptionsTemplate): Verdict {
  const refusal = reflectorProblem(spec) ?? argumentProblem(spec.extraArgs ?? []);
  if (refusal !== undefined) return deny('invalid_input', refusal);
  const warnings = [
    ...(Object.keys(idle) as (keyof typeof idle)[]).flatMap((field) =>
      spec[field] === undefined ? [] : [`spec.${field} has no effect in Isthmus: ${idle[field]}`],
    ),
    ...(spec.metricsEnabled
      ? []
      : [
          'spec.metricsEnabled is false, which has no effect in Isthmus: whether metrics are served is said at installation (--metrics)',
        ]),
    ...(spec.extraArgs ?? [])
      .filter((argument) => harmless.test(argument))
      .map((argument) => `spec.extraArgs: ${argument} has no effect in Isthmus`),
  ];
  return warnings.length ? { allowed: true, warnings } : allow;
}

function reflectorProblem({ reflectorsConfig = {} }: VkOptionsTemplate['spec']): string | undefined {
  for (const [resource, { type }] of Object.entries(reflectorsConfig)) {
    if (!known.has(resource)) {
      return `spec.reflectorsConfig.${resource} is not reflected: accepted are ${reflectedResources.join(', ')}`;
    }
    if (ownRules.has(resource) && type !== undefined && type !== 'CustomLiqo') {
      return `spec.reflectorsConfig.${resource}.type is ${type}: accepted is CustomLiqo, it follows the pods that are offloaded; 0 workers switch it off`;
    }
    if (resource === 'endpointslice' && type !== undefined && type !== (reflectorsConfig.service?.type ?? 'DenyList')) {
      return `spec.reflectorsConfig.endpointslice.type is ${type}: slices follow their Service, so set spec.reflectorsConfig.service.type`;
    }
  }
  return undefined;
}

function argumentProblem(extraArgs: readonly string[]): string | undefined {
  const strange = extraArgs.find((argument) => !meaningful.test(argument) && !harmless.test(argument));
  return (
    strange &&
    `spec.extraArgs contains ${JSON.stringify(strange)}, which means nothing here: accepted are --enable-apiserver-support, --disable-ip-reflection and --<kind>-reflection-workers or -type`
  );
}
