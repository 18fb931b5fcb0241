/** Which rules hold for the pods and objects of a consumer at this provider: what its policies say, else what is safe. Pure. */
import { termsFor } from '#agent/peering/slices/grant.ts';
import type { GuestPolicy } from '#shared/schema/isthmus/guest-policy.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';

export type GuestRules = { readonly [K in keyof GuestPolicy]-?: NonNullable<GuestPolicy[K]> };

/** What holds where no policy says otherwise (docs/guests.md argues each). */
export const safeRules: GuestRules = {
  podSecurity: 'baseline',
  volumes: ['configMap', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim', 'projected', 'secret'],
  tolerations: [],
  nodeLabels: [
    ...['kubernetes.io/arch', 'kubernetes.io/os', 'node.kubernetes.io/instance-type'],
    ...['topology.kubernetes.io/region', 'topology.kubernetes.io/zone'],
  ],
  schedulers: [],
  runtimeClasses: [],
  priorityClasses: [],
  maxGracePeriodSeconds: 600,
  limitsEnforcement: 'Soft',
  // The grant by default (4 CPUs, 8Gi, 110 pods) runs out of pods first.
  defaultRequests: { cpu: '25m', memory: '64Mi' },
  defaultLimits: {},
};

/** Of several policies about this consumer, each field is that of the first by name that has it. */
export function guestRules(policies: readonly PeeringPolicy[], consumer: string): GuestRules {
  const said = termsFor(policies, consumer).flatMap(([, { guests }]) => (guests ? [guests] : []));
  const given = said.map((one) => Object.fromEntries(Object.entries(one).filter(([, value]) => value != null)));
  return Object.assign({}, safeRules, ...given.reverse());
}

/** `*` at the end of a pattern stands for any rest. */
export const matchesAny = (patterns: readonly string[], text: string): boolean =>
  patterns.some((one) => (one.endsWith('*') ? text.startsWith(one.slice(0, -1)) : one === text));
