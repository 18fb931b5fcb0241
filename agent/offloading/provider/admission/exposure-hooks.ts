/** Hooks for what guests' Services and Ingresses ask of the provider's controllers. */
import type { Hook, Hooks } from '#agent/admission/hook.ts';
import type { Review } from '#agent/admission/review.ts';
import type { Cluster } from '#kube/model/types.ts';
import type { Namespace } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { GuestRules } from '../guests/decide.ts';
import { createRulebook } from '../guests/rulebook.ts';
import { validateGuestIngress, validateGuestService } from './exposure.ts';

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

  return {
    routes: new Map<string, Hook>([
      [
        '/validate/services',
        async (review, signal) => validateGuestService(review.object, review.before, await rulesFor(review, signal)),
      ],
      [
        '/validate/ingresses',
        async (review, signal) => validateGuestIngress(review.object, review.before, await rulesFor(review, signal)),
      ],
    ]),
    synced: (signal) => rulebook.policies.synced(signal),
  };
}
