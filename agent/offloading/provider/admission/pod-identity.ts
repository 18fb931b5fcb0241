/**
 * As which account of this cluster a guest's pod runs, and what it is given to prove it. Platforms put accounts with rights of their own into each
 * namespace, and other systems believe the tokens and certificates of this cluster. Pure.
 */
import { matchesAny } from '#shared/domain/key-patterns.ts';
import type { GuestRules } from '../guests/decide.ts';
import { settingText } from '../guests/refusal-text.ts';
import type { GuestPlacement } from './guest-pod.ts';
import type { Refusal } from './pod-placement.ts';

/** Every namespace has it, without rights. */
const plainAccount = 'default';
/** Not `podCertificate`: a signer of the provider would vouch for the guest. */
const sources: readonly string[] = ['clusterTrustBundle', 'configMap', 'downwardAPI', 'secret', 'serviceAccountToken'];

const isAcceptedAccount = (name: string, { serviceAccounts }: Pick<GuestRules, 'serviceAccounts'>): boolean =>
  name === plainAccount || matchesAny(serviceAccounts, name);

export function* identityRefusals(pod: GuestPlacement, rules: GuestRules): Generator<Refusal> {
  for (const field of ['serviceAccountName', 'serviceAccount'] as const) {
    const name = pod[field];
    if (name && !isAcceptedAccount(name, rules))
      yield [
        field,
        `is ${name}; accepted: ${[plainAccount, ...rules.serviceAccounts].join(', ')} ${settingText('serviceAccounts')}`,
      ];
  }
  for (const [v, { projected }] of (pod.volumes ?? []).entries()) {
    for (const [s, source] of (projected?.sources ?? []).entries())
      yield* ofSource(`volumes[${v}].projected.sources[${s}]`, source, rules);
  }
}

type Source = NonNullable<NonNullable<NonNullable<GuestPlacement['volumes']>[number]['projected']>['sources']>[number];

function* ofSource(at: string, source: Source, rules: GuestRules): Generator<Refusal> {
  const type = Object.keys(source).find((key) => source[key] != null && !sources.includes(key));
  if (type !== undefined)
    yield [`${at}.${type}`, `is of a type that guests do not get; accepted are ${sources.join(', ')}`];
  const audience = source.serviceAccountToken?.audience;
  if (audience && !matchesAny(rules.tokenAudiences, audience))
    yield [
      `${at}.serviceAccountToken.audience`,
      `is ${audience}: it would believe the guest as an account of the provider; accepted: ${rules.tokenAudiences.join(', ') || 'none'} ${settingText('tokenAudiences')}`,
    ];
}
