/**
 * Sessions of the console: the API key, encrypted into a cookie that no script can read. The broker keeps none of them, so a restart ends none,
 * and a key that is revoked ends its sessions with it.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import * as z from 'zod';
import type { SecretBox } from '#control/ports/secret-box.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';

/** The prefix makes browsers refuse it unless it is Secure, for this host alone and for every path. */
const cookieName = '__Host-isthmus-session';
/** Only a script of the same origin can send it: a browser asks the broker before it sends it from elsewhere, and is never answered. */
const consoleHeader = 'isthmus-console';
const sessionMs = 12 * 3_600_000;
const context = 'console session';
/** Of name and value: browsers drop a larger cookie without a word. */
const maxCookieBytes = 4_096;

const Session = z.object({
  credential: z.string(),
  /** Of a token of an identity provider. */
  tenant: z.string().optional(),
  until: z.number(),
});
export type Credential = Omit<z.infer<typeof Session>, 'until'>;

export interface Sessions {
  /** The value of Set-Cookie that begins one; rejects with `too_large` when no browser would keep it. */
  begin(credential: Credential): Promise<string>;
  /** The API key or token of the request's session; undefined without one, or when it is over. */
  credentialOf(headers: IncomingHttpHeaders): Promise<Credential | undefined>;
}

const attributes = 'Path=/; Secure; HttpOnly; SameSite=Strict';
export const endedCookie = `${cookieName}=; ${attributes}; Max-Age=0`;

export function createSessions(box: SecretBox, clock: Clock): Sessions {
  return {
    async begin(credential) {
      const session = JSON.stringify({ ...credential, until: clock.now() + sessionMs });
      const cookie = `${cookieName}=${await box.seal(session, context)}`;
      if (cookie.length > maxCookieBytes) {
        throw new AppError(
          'too_large',
          `a session with this token is a cookie of ${cookie.length} bytes, browsers keep ${maxCookieBytes}: have the identity provider put fewer claims into ID tokens of this client, or log in with an API key`,
          { detail: { field: 'key' } },
        );
      }
      return `${cookie}; ${attributes}; Max-Age=${sessionMs / 1_000}`;
    },
    async credentialOf({ cookie }) {
      const sealed = cookie
        ?.split(/;\s*/)
        .find((each) => each.startsWith(`${cookieName}=`))
        ?.slice(cookieName.length + 1);
      if (!sealed) return undefined;
      // What was sealed with another key is no session.
      const opened = await box.open(sealed, context).catch(() => undefined);
      if (opened === undefined) return undefined;
      const session = Session.parse(JSON.parse(opened));
      return session.until > clock.now() ? session : undefined;
    },
  };
}

/** Throws `forbidden` unless the console of this very origin sends it: the cookie alone proves nothing about the sender. */
export function mustBeConsole({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site'];
  const foreignOrigin = headers.origin !== undefined && hostOf(headers.origin) !== headers.host;
  if (headers[consoleHeader] === '1' && !foreignOrigin && (site === undefined || site === 'same-origin')) return;
  throw new AppError(
    'forbidden',
    `a session is for the console of this broker only: the request needs the header ${consoleHeader}: 1 and its origin, and no other origin`,
    { detail: { field: foreignOrigin ? 'origin' : consoleHeader } },
  );
}

const hostOf = (origin: string): string | undefined => {
  try {
    return new URL(origin).host;
  } catch {
    return undefined;
  }
};
