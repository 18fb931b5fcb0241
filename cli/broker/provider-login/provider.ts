/** The requests to an identity provider: discovery, device authorization, tokens. The command line is a public client, without a secret. */
import { isIP } from 'node:net';
import * as z from 'zod';
import type { CliIo } from '#cli/output/io.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { noIdToken, type TokenAnswer } from './decide.ts';

const timeoutMs = 15_000;

const Discovered = z.object({
  issuer: z.string(),
  token_endpoint: z.string(),
  device_authorization_endpoint: z.string().optional(),
  scopes_supported: z.array(z.string()).optional(),
});

const DeviceCode = z.object({
  device_code: z.string().min(1),
  user_code: z.string().min(1),
  verification_uri: z.string().optional(),
  /** As some providers call it since drafts of the RFC. */
  verification_url: z.string().optional(),
  verification_uri_complete: z.string().optional(),
  expires_in: z.number().positive(),
  interval: z.number().positive().optional(),
});
export type DeviceCode = z.infer<typeof DeviceCode>;

const TokenBody = z.object({ id_token: z.string().optional(), refresh_token: z.string().optional() });
const ErrorBody = z.object({ error: z.string(), error_description: z.string().optional() });

type Io = Pick<CliIo, 'signal'>;

export interface Provider {
  /** `invalid_input` when the provider or this client has no device flow. */
  askForCode(): Promise<DeviceCode>;
  /** One request of the token endpoint; what goes wrong is an answer, too. `signal`: in place of the command's own. */
  tokens(grant: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<TokenAnswer>;
}

/** A token travels in clear over plain HTTP, so that is for providers on this machine alone. */
function mustBeSafe(field: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? '';
  const local = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && local)) return text;
  throw new AppError(
    'invalid_input',
    `${field} is ${JSON.stringify(text)}, accepted is https://HOST, and http:// on loopback`,
    {
      detail: { field, value: text },
    },
  );
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function ask(io: Io, url: string, form?: Readonly<Record<string, string>>): Promise<Answer> {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: abortsWith(io.signal, AbortSignal.timeout(timeoutMs)),
    ...(form && { method: 'POST', body: new URLSearchParams(form) }),
  });
  return { status: response.status, body: await response.json().catch(() => undefined) };
}

/** Of `fetch`, whose message is always the same: the reason is in the cause. */
const reasonOf = (error: unknown): string => {
  const { name, message, cause } = error as Error;
  return name === 'TimeoutError' || name === 'AbortError'
    ? 'no answer in time'
    : ((cause as Error | undefined)?.message ?? message);
};

/** Reads the discovery document of the provider; `issuer_unreachable` and `invalid_input` say what it lacks. */
export async function findProvider(io: Io, issuer: string, clientId: string): Promise<Provider> {
  const found = await discover(io, mustBeSafe('issuer', issuer));
  const tokenEndpoint = mustBeSafe('token_endpoint', found.token_endpoint);
  const scope = [
    'openid',
    'email',
    'profile',
    ...(found.scopes_supported?.includes('offline_access') ? ['offline_access'] : []),
  ];

  return {
    async askForCode() {
      const endpoint = found.device_authorization_endpoint;
      if (endpoint === undefined) {
        throw noDeviceFlow(`${issuer} names no device_authorization_endpoint in its discovery document`);
      }
      const { status, body } = await ask(io, mustBeSafe('device_authorization_endpoint', endpoint), {
        client_id: clientId,
        scope: scope.join(' '),
      }).catch((cause: unknown) => {
        io.signal.throwIfAborted();
        throw unreachable(endpoint, reasonOf(cause), cause);
      });
      const code = DeviceCode.safeParse(body);
      if (code.success && status === 200) return code.data;
      const refusal = ErrorBody.safeParse(body);
      if (!refusal.success) throw unreachable(endpoint, `it answered with status ${status} and no device code`);
      const { error, error_description: description } = refusal.data;
      throw noDeviceFlow(`${issuer} refuses client ${JSON.stringify(clientId)}: ${description ?? error}`);
    },

    async tokens(grant, signal = io.signal) {
      try {
        const { status, body } = await ask({ signal }, tokenEndpoint, { ...grant, client_id: clientId });
        const refusal = ErrorBody.safeParse(body);
        if (status >= 500 || (status !== 200 && !refusal.success))
          return { kind: 'silence', why: `it answered with status ${status}` };
        if (refusal.success) {
          const { error, error_description: description } = refusal.data;
          return { kind: 'error', error, ...(description !== undefined && { description }) };
        }
        const tokens = TokenBody.safeParse(body);
        if (!tokens.success) return { kind: 'error', error: noIdToken };
        const { id_token: idToken, refresh_token: refreshToken } = tokens.data;
        const more = refreshToken === undefined ? {} : { refreshToken };
        return idToken === undefined
          ? { kind: 'no ID token', ...more }
          : { kind: 'tokens', tokens: { idToken, ...more } };
      } catch (error) {
        signal.throwIfAborted();
        return { kind: 'silence', why: reasonOf(error) };
      }
    },
  };
}

const noDeviceFlow = (message: string): AppError =>
  new AppError('invalid_input', message, {
    detail: {
      field: 'client-id',
      remedy:
        'at the provider, make a public client (without a secret) for which the device authorization grant is enabled, and name it with --client-id; or log in with --key',
    },
  });

const unreachable = (url: string, why: string, cause?: unknown): AppError =>
  new AppError('issuer_unreachable', `${url} cannot be asked: ${why}`, {
    cause,
    detail: { url, remedy: 'check --issuer, and that this machine reaches the provider' },
  });

async function discover(io: Io, issuer: string): Promise<z.infer<typeof Discovered>> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const { status, body } = await ask(io, url).catch((cause: unknown) => {
    io.signal.throwIfAborted();
    throw unreachable(url, reasonOf(cause), cause);
  });
  const found = Discovered.safeParse(body);
  if (status !== 200 || !found.success)
    throw unreachable(url, `it answered with status ${status} and no discovery document`);
  if (found.data.issuer === issuer) return found.data;
  throw new AppError(
    'invalid_input',
    `issuer is ${JSON.stringify(issuer)}, but the provider there calls itself ${JSON.stringify(found.data.issuer)}`,
    { detail: { field: 'issuer', value: issuer, remedy: 'give --issuer exactly as the provider calls itself' } },
  );
}
