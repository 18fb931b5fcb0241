/** Annotations of guests' objects that controllers of the provider would obey: a list of what is accepted, as with nodes and hosts. Pure. */
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { matchesAny } from '#shared/domain/key-patterns.ts';
import { settingText } from '../guests/refusal-text.ts';

interface Annotated {
  readonly annotations?: Readonly<Record<string, string>> | null | undefined;
}

/** What was there before stays: the provider's own controllers add to guests' objects, and policies change. Keys without a domain are accepted. */
export function validateAnnotations(
  after: Annotated | null | undefined,
  before: Annotated | null | undefined,
  accepted: readonly string[],
): Verdict {
  const found = Object.entries(after?.annotations ?? {}).find(
    ([key, value]) => before?.annotations?.[key] !== value && key.includes('/') && !matchesAny(accepted, key),
  );
  if (found === undefined) return allow;
  const [key, value] = found;
  return deny(
    'sandbox_refused',
    `metadata.annotations[${key}] is ${JSON.stringify(value.slice(0, 100))}: controllers of the provider obey it; accepted are ${accepted.join(', ')} ${settingText('annotations')}`,
  );
}
