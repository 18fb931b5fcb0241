/** The console in front of the REST API: its files at `/`, sessions at `/console/session`, and requests of a session passed on with its key. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import * as z from 'zod';
import type { Origin } from '#control/access/caller.ts';
import { authenticateMember, looksLikeOperatorKey } from '#functions/runtime/authenticate.ts';
import type { Composition } from '#functions/runtime/composition.ts';
import { problemResponse } from '#functions/runtime/problem.ts';
import { isPolicySource } from '#shared/domain/cross-origin.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Ids } from '#shared/ports/ids.ts';
import { type ConsoleFiles, readConsoleFiles, sendFile } from './console-files.ts';
import { type Credential, endedCookie, mustBeConsole, type Sessions } from './console-session.ts';
import { readBody, splitUrl } from './gateway-event.ts';
import { sendResult } from './http-gateway.ts';
import type { Proxies } from './proxies.ts';

export interface ConsoleOptions {
  readonly composition: Composition;
  readonly sessions: Sessions;
  readonly ids: Ids;
  readonly proxies: Proxies;
  /** What `isthmus login` has to be told; shown to sessions only. */
  readonly broker: { readonly url: string; readonly caHash: string };
  /** The folder that has the built files; asked for when the page is first wanted. */
  readonly folder: () => Promise<string>;
}

const sessionPath = '/console/session';
const maxLoginBytes = 16 * 1024;
const Login = z.strictObject({ key: z.string().min(1).max(8_192), tenant: z.string().max(63).optional() });

/** What a request of the credential's holder carries. */
const headersFor = ({ credential, tenant }: Credential): Record<string, string> => ({
  authorization: `Bearer ${credential}`,
  ...(tenant !== undefined && { 'isthmus-tenant': tenant }),
});

/** What is neither a file nor a session goes to `otherwise`. */
export function withConsole(otherwise: RequestListener, options: ConsoleOptions): RequestListener {
  const { composition, sessions, ids, proxies, broker } = options;
  const filesOf = once(async () => readConsoleFiles(await options.folder()));

  async function answer(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const path = splitUrl(request.url ?? '/').rawPath;
    if (path === sessionPath) return answerSession(request, response, requestId);
    if (isFile(request, path)) {
      const file = (await filesOf()).get(path);
      if (file === undefined) throw new AppError('not_found', `the console has no file ${path}`);
      return sendFile(file, request, response, providerIn(splitUrl(request.url ?? '/').rawQueryString));
    }
    if (request.headers.authorization === undefined) {
      const credential = await sessions.credentialOf(request.headers);
      if (credential !== undefined) {
        mustBeConsole(request);
        Object.assign(request.headers, headersFor(credential));
      }
    }
    otherwise(request, response);
  }

  async function answerSession(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const reply = (statusCode: number, body?: unknown, cookie?: string): void =>
      sendResult(response, request, {
        statusCode,
        headers: {
          'cache-control': 'no-store',
          'x-content-type-options': 'nosniff',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(cookie !== undefined && { 'set-cookie': cookie }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    mustBeConsole(request);
    const origin = { from: proxies.clientOf(request), requestId };
    switch (request.method) {
      case 'POST': {
        const { key, tenant } = await loginIn(request);
        const credential = { credential: key, ...(tenant !== undefined && { tenant }) };
        const holder = await holderOf(composition, credential, origin);
        return reply(200, { ...holder, broker }, await sessions.begin(credential));
      }
      case 'GET': {
        const credential = await sessions.credentialOf(request.headers);
        return credential === undefined
          ? reply(200, { kind: 'none' })
          : reply(200, { ...(await holderOf(composition, credential, origin)), broker });
      }
      case 'DELETE':
        return reply(204, undefined, endedCookie);
      default:
        throw new AppError('method_not_allowed', `${sessionPath} has GET, POST and DELETE`, {
          detail: { allow: 'GET, POST, DELETE' },
        });
    }
  }

  return (request, response) => {
    const requestId = ids.next('req');
    answer(request, response, requestId).catch((error: unknown) => {
      if (response.headersSent) return response.destroy();
      const problem = problemResponse(error, requestId);
      const { statusCode = 500 } = problem;
      if (statusCode >= 500) composition.log.error('the console could not answer', error, { requestId });
      sendResult(response, request, problem);
    });
  };
}

/** The origin of the identity provider that the address of the page names, which the page may then ask. */
function providerIn(query: string): string | undefined {
  const issuer = new URLSearchParams(query).get('issuer');
  if (issuer === null || !URL.canParse(issuer)) return undefined;
  const { origin } = new URL(issuer);
  // It becomes part of a header, where a host could hold a semicolon.
  return isPolicySource(origin) ? origin : undefined;
}

const isFile = ({ method }: IncomingMessage, path: string): boolean =>
  (method === 'GET' || method === 'HEAD') && (path === '/' || path === '/icon.svg' || path.startsWith('/assets/'));

async function loginIn(request: IncomingMessage): Promise<z.infer<typeof Login>> {
  const body = await readBody(request, maxLoginBytes);
  if (body === undefined) throw new AppError('too_large', `the body is larger than ${maxLoginBytes} bytes`);
  const login = Login.safeParse(parsed(body.toString('utf8')));
  if (login.success) return login.data;
  throw new AppError('malformed_request', 'the body is no login, accepted is {"key": "isk_…"}: an API key');
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Whose key it is; rejects with `unauthenticated` when it was revoked or has expired. */
async function holderOf({ control }: Composition, held: Credential, origin: Origin): Promise<object> {
  if (looksLikeOperatorKey(held.credential)) {
    const { principal } = await control.tenants.operators.authenticate(held.credential, origin);
    return { kind: 'operator', principal };
  }
  const caller = await authenticateMember(control, headersFor(held), origin);
  const { tenant, principal, role, scopes } = caller;
  return { kind: 'member', tenant, principal, role, ...(scopes && { scopes }) };
}

/** A failure is forgotten: the next request tries again. */
function once(read: () => Promise<ConsoleFiles>): () => Promise<ConsoleFiles> {
  let reading: Promise<ConsoleFiles> | undefined;
  return () => {
    reading ??= read().catch((error: unknown) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
}
