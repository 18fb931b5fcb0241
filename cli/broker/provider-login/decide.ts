/** What an answer of a token endpoint means while the device flow waits for consent (RFC 8628, sections 3.4 and 3.5). */
import { unreachable } from '#shared/domain/unreachable.ts';

export const noIdToken = 'its answer holds no ID token';

export interface Tokens {
  readonly idToken: string;
  readonly refreshToken?: string;
}

/** `silence`: no connection, no answer in time, or a status of 500 and above. */
export type TokenAnswer =
  | { readonly kind: 'tokens'; readonly tokens: Tokens }
  /** Other tokens, as a provider may answer a renewal (OpenID Connect Core, 12.2); the refresh token may be another all the same. */
  | { readonly kind: 'no ID token'; readonly refreshToken?: string }
  | { readonly kind: 'error'; readonly error: string; readonly description?: string }
  | { readonly kind: 'silence'; readonly why: string };

export type Next =
  | { readonly do: 'ask again'; readonly afterMs: number }
  | { readonly do: 'take'; readonly tokens: Tokens }
  | { readonly do: 'give up'; readonly because: 'denied' | 'expired' | 'refused'; readonly message: string };

/** Where the provider names no interval. */
export const defaultIntervalSeconds = 5;
const slowerMs = 5_000;
/** Codes live for some minutes: a provider that is back is not kept waiting for the rest of them. */
const longestSilenceMs = 60_000;

/** `intervalMs` is the pause that was made before this answer; that of the next poll grows from it and never shrinks. */
export function decide(answer: TokenAnswer, intervalMs: number): Next {
  switch (answer.kind) {
    case 'tokens':
      return { do: 'take', tokens: answer.tokens };
    case 'silence':
      return { do: 'ask again', afterMs: Math.max(intervalMs, Math.min(intervalMs * 2, longestSilenceMs)) };
    case 'no ID token':
      return { do: 'give up', because: 'refused', message: noIdToken };
    case 'error': {
      const message = answer.description ?? answer.error;
      if (answer.error === 'authorization_pending') return { do: 'ask again', afterMs: intervalMs };
      if (answer.error === 'slow_down') return { do: 'ask again', afterMs: intervalMs + slowerMs };
      if (answer.error === 'access_denied') return { do: 'give up', because: 'denied', message };
      if (answer.error === 'expired_token') return { do: 'give up', because: 'expired', message };
      return { do: 'give up', because: 'refused', message };
    }
    default:
      return unreachable(answer);
  }
}
