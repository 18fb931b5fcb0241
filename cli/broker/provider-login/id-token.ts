/** What this side reads of an ID token. It came from the provider itself, over TLS; the broker checks its signature. */
import * as z from 'zod';
import { AppError } from '#shared/errors/app-error.ts';

const Claims = z.object({ sub: z.string(), exp: z.number(), email: z.string().optional() });

export function claimsOf(token: string): z.infer<typeof Claims> {
  try {
    return Claims.parse(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')));
  } catch (cause) {
    throw new AppError('issuer_unreachable', 'the provider answered with an ID token that cannot be read', { cause });
  }
}

/** Milliseconds since the Unix epoch. */
export const expiryOf = (token: string): number => claimsOf(token).exp * 1_000;
