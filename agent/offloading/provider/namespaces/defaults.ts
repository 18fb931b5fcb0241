/** What every namespace of a consumer has, and what holds where its policy says nothing. Pure. */
import { termsFor } from '#agent/peering/slices/grant.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type { GuestRules } from '../guests/decide.ts';

export type Default = 'limitRange' | 'networkPolicy' | 'resourceQuota';
type Spec = Record<string, unknown>;
export type Defaults = Partial<Record<Default, Spec>>;

const names = ['limitRange', 'networkPolicy', 'resourceQuota'] as const;

/** Storage, addresses and ports that cost the provider something, in each namespace. */
export const safeQuota = {
  hard: {
    'count/volumesnapshots.snapshot.storage.k8s.io': '20',
    persistentvolumeclaims: '20',
    'requests.storage': '200Gi',
    'services.loadbalancers': '5',
    'services.nodeports': '50',
  },
};

/** Of several policies about this consumer the first by name that has one. */
export function defaultsFor(
  policies: readonly PeeringPolicy[],
  consumer: string,
  { networkIsolation }: Pick<GuestRules, 'networkIsolation'>,
  isolation: () => Spec,
): Defaults {
  const terms = termsFor(policies, consumer).map(([, { namespaceDefaults }]) => namespaceDefaults);
  const said = (what: Default): Spec | undefined => terms.find((one) => one?.[what])?.[what];
  const safe = (what: Default): Spec | undefined => {
    if (what === 'resourceQuota') return safeQuota;
    return what === 'networkPolicy' && networkIsolation ? isolation() : undefined;
  };
  return Object.fromEntries(
    names.flatMap((what) => {
      const spec = said(what) ?? safe(what);
      return spec === undefined ? [] : [[what, spec]];
    }),
  );
}

/** The level that a namespace should have; undefined: it may keep the one it has. A stricter one that an administrator set stays. */
export function levelFor(
  current: string | undefined,
  { podSecurity }: Pick<GuestRules, 'podSecurity'>,
): GuestRules['podSecurity'] | undefined {
  const mayStay =
    podSecurity === 'baseline' ? ['baseline', 'restricted'].includes(current ?? '') : current === podSecurity;
  return mayStay ? undefined : podSecurity;
}
