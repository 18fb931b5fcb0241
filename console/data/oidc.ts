/**
 * Logging in by an identity provider: authorization code with PKCE, as a public client. The page is loaded once more with the provider in its address,
 * for which the broker lets it ask that one provider; the ID token then becomes a session as an API key does.
 */
import { holdsKey, logIn, messageOf, replaceKey } from './api.ts';

export interface Provider {
  /** As in the iss claim of its tokens. */
  readonly issuer: string;
  readonly client: string;
  readonly tenant: string;
}

interface Pending extends Provider {
  readonly state?: string;
  readonly verifier?: string;
  readonly nonce?: string;
}

interface Discovered {
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly scopes_supported?: readonly string[];
}

interface Tokens {
  readonly id_token?: string;
  readonly refresh_token?: string;
}

const pendingKey = 'isthmus-oidc';
const rememberedKey = 'isthmus-provider';
const redirectUri = (): string => `${location.origin}/`;

/** The provider of the last login on this machine. */
export function remembered(): Partial<Provider> {
  return JSON.parse(localStorage.getItem(rememberedKey) ?? '{}') as Partial<Provider>;
}

const keep = (pending: Pending): void => sessionStorage.setItem(pendingKey, JSON.stringify(pending));

function pendingOrFail(): Pending {
  const text = sessionStorage.getItem(pendingKey);
  if (text === null) throw new Error('this login was not begun here, or it is over; begin again');
  return JSON.parse(text) as Pending;
}

export function beginLogin(provider: Provider): void {
  keep(provider);
  localStorage.setItem(rememberedKey, JSON.stringify(provider));
  location.assign(`/?${new URLSearchParams({ issuer: provider.issuer })}`);
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
const secret = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));

async function read<T>(what: string, url: string, init: RequestInit = {}): Promise<T> {
  const answer = await fetch(url, { ...init, credentials: 'omit' }).catch(() => {
    throw new Error(
      `${what} at ${url} cannot be read by this page: it has to answer, and to allow requests of ${location.origin}`,
    );
  });
  const body = (await answer.json().catch(() => ({}))) as T & { error?: string; error_description?: string };
  if (answer.ok) return body;
  throw new Error(`${what} refused: ${body.error_description ?? body.error ?? `status ${answer.status}`}`);
}

const discover = ({ issuer }: Provider): Promise<Discovered> =>
  read('the identity provider', `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);

async function askProvider(provider: Provider): Promise<void> {
  const { authorization_endpoint: endpoint, scopes_supported: scopes = [] } = await discover(provider);
  const [state, verifier, nonce] = [secret(), secret(), secret()];
  keep({ ...provider, state, verifier, nonce });
  const challenge = base64url(
    new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))),
  );
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: provider.client,
    redirect_uri: redirectUri(),
    scope: `openid email profile${scopes.includes('offline_access') ? ' offline_access' : ''}`,
    state,
    nonce,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  location.assign(`${endpoint}${endpoint.includes('?') ? '&' : '?'}${query}`);
}

function claimsOf(token: string): { readonly nonce?: unknown; readonly exp?: number } {
  const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
  return JSON.parse(atob(payload)) as { nonce?: unknown; exp?: number };
}

/** So long before its end an ID token is renewed, and so long after a failure it is tried again. */
const earlyMs = 60_000;
const againMs = 10_000;
const endOf = (token: string): number => (claimsOf(token).exp ?? 0) * 1_000;

/** Where the page itself holds the ID token: renews it until the page holds another, or the provider gives none before its end. */
async function keepFresh(client: string, endpoint: string, token: string, refreshToken: string): Promise<void> {
  let [held, refresh] = [token, refreshToken];
  let pause = endOf(held) - earlyMs - Date.now();
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(1_000, pause)));
    if (!holdsKey(held) || Date.now() >= endOf(held)) return;
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refresh, client_id: client });
    const found = await read<Tokens>('the identity provider', endpoint, { method: 'POST', body }).catch(
      (): Tokens => ({}),
    );
    refresh = found.refresh_token ?? refresh;
    const next = found.id_token;
    if (next !== undefined && !replaceKey(held, next)) return;
    held = next ?? held;
    pause = next === undefined ? againMs : endOf(held) - earlyMs - Date.now();
  }
}

async function redeem(pending: Pending, code: string): Promise<void> {
  sessionStorage.removeItem(pendingKey);
  const { token_endpoint: endpoint } = await discover(pending);
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri(),
    client_id: pending.client,
    code_verifier: pending.verifier ?? '',
  });
  const { id_token: token, refresh_token: refresh } = await read<Tokens>('the identity provider', endpoint, {
    method: 'POST',
    body,
  });
  if (token === undefined) throw new Error('the identity provider gave no ID token; the client needs the scope openid');
  if (claimsOf(token).nonce !== pending.nonce) throw new Error('the ID token belongs to another login; begin again');
  await logIn(token, pending.tenant);
  if (refresh !== undefined && holdsKey(token)) void keepFresh(pending.client, endpoint, token, refresh);
}

/** Goes on where the address says; resolves with what went wrong, or with nothing when there is no login under way or it has succeeded. */
export async function goOnWithLogin(): Promise<string | undefined> {
  const query = new URLSearchParams(location.search);
  const [issuer, code, state, error] = ['issuer', 'code', 'state', 'error'].map((name) => query.get(name) ?? undefined);
  if (issuer === undefined && code === undefined && error === undefined) return undefined;
  try {
    if (error !== undefined)
      throw new Error(`the identity provider refused: ${query.get('error_description') ?? error}`);
    const pending = pendingOrFail();
    if (code !== undefined && (state === undefined || state !== pending.state)) {
      throw new Error('the answer of the identity provider belongs to another login; begin again');
    }
    if (code !== undefined && issuer === undefined) {
      location.replace(`/?${new URLSearchParams({ issuer: pending.issuer, code, state: state ?? '' })}`);
      return await new Promise(() => undefined);
    }
    if (issuer !== pending.issuer) throw new Error('this login was begun for another identity provider; begin again');
    if (code === undefined) {
      await askProvider(pending);
      return await new Promise(() => undefined);
    }
    await redeem(pending, code);
    history.replaceState(null, '', '/');
    return undefined;
  } catch (failure) {
    sessionStorage.removeItem(pendingKey);
    history.replaceState(null, '', '/');
    return messageOf(failure);
  }
}
