/** What a guest's Service may not ask for on this provider. Pure. */
import * as z from 'zod';
import { allow, deny, type Verdict } from '#agent/admission/review.ts';

const GuestService = z.looseObject({ spec: z.looseObject({ externalIPs: z.array(z.string()).nullish() }).nullish() });

/** External IPs: every node would send traffic for these addresses to the guest's pods, and take it from its real destination. */
export function validateGuestService(service: unknown): Verdict {
  const parsed = GuestService.safeParse(service);
  if (!parsed.success) return deny('invalid_input', 'spec.externalIPs is no list of addresses; leave it out');
  const taken = parsed.data.spec?.externalIPs ?? [];
  if (taken.length === 0) return allow;
  return deny(
    'sandbox_refused',
    `spec.externalIPs is ${taken.join(', ')}: in a namespace of a consumer it would take traffic of others; leave it out and use type LoadBalancer or NodePort`,
  );
}
