/** Hooks for what guests' objects, Services and Ingresses above all, ask of the provider's controllers. */
import type { Hook, Hooks } from '#agent/admission/hook.ts';
import { allow, type Review, type Verdict } from '#agent/admission/review.ts';
import { validateFinalizers } from '#agent/peering/admission/finalizers.ts';
import type { Cluster } from '#kube/model/types.ts';
import type { Namespace } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { GuestRules } from '../guests/decide.ts';
import { createRulebook } from '../guests/rulebook.ts';
import { validateGuestIngress, validateGuestSecret, validateGuestService } from './exposure.ts';

export function createExposureHooks(
  { caches }: Pick<Cluster, 'caches'>,
  namespaceOf: (name: string, signal: AbortSignal) => Promise<Namespace | undefined>,
): Hooks {
  const rulebook = createRulebook(caches);

  /** Undefined: the user is not of the consumer whose namespace it is. A consumer's users are of the group with its cluster ID. */
  async function rulesFor({ namespace, user }: Review, signal: AbortSignal): Promise<GuestRules | undefined> {
    const consumer = (await namespaceOf(namespace, signal))?.metadata.labels?.[label.remoteClusterId];
    return consumer !== undefined && user.groups.includes(consumer) ? rulebook.rulesOf(consumer) : undefined;
  }

  /** Finalizers of the consumer are refused on all that it writes. */
  const judged =
    (judge: (object: unknown, before: unknown, rules: GuestRules | undefined) => Verdict): Hook =>
    async (review, signal) => {
      const { object, before } = review;
      const rules = await rulesFor(review, signal);
      const finalizers = rules && object ? validateFinalizers(object, before) : allow;
      return finalizers.allowed ? judge(object, before, rules) : finalizers;
    };

  return {
    routes: new Map<string, Hook>([
      ['/validate/services', judged(validateGuestService)],
      ['/validate/ingresses', judged(validateGuestIngress)],
      ['/validate/secrets', judged(validateGuestSecret)],
      ['/validate/finalizers', judged(() => allow)],
    ]),
    synced: (signal) => rulebook.policies.synced(signal),
  };
}
