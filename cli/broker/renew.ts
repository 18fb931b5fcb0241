/** Tokens of a login by an identity provider end within minutes or hours; each command renews them by the refresh token before they do. */
import type { CliIo } from '#cli/output/io.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { type Login, loadLogin, saveLogin } from './login-config.ts';
import { expiryOf } from './provider-login/id-token.ts';
import { findProvider } from './provider-login/provider.ts';
import { lockRenewal } from './renewal-lock.ts';

/** Renewed this long before the end, so that a request in flight and a slow clock do not meet it. */
const marginMs = 60_000;

type Io = Pick<CliIo, 'clock' | 'signal' | 'env' | 'home'>;

const isFresh = ({ provider }: Login, now: number): boolean =>
  provider === undefined || provider.expiresAt - now > marginMs;

/**
 * The login as it is when its token is good for another minute; else the renewed one, which is saved. Fails with `unauthenticated` when it is over. What keeps it
 * from being renewed counts only when its token has ended.
 */
export async function renewed(io: Io, login: Login): Promise<Login> {
  if (isFresh(login, io.clock.now())) return login;
  let release: () => Promise<void>;
  try {
    release = await lockRenewal(io);
  } catch (error) {
    if (codeOf(error) !== undefined && isGood(login, io.clock.now())) return login;
    throw error;
  }
  try {
    // Refresh tokens are often good once: another command may have used ours, and has saved what it got.
    const saved = await loadLogin(io);
    const latest = isSameLogin(saved, login) ? saved : login;
    return isFresh(latest, io.clock.now()) ? latest : await renew(io, latest);
  } finally {
    await release();
  }
}

const isGood = ({ provider }: Login, now: number): boolean => (provider?.expiresAt ?? 0) > now;

const isSameLogin = (a: Login, b: Login): boolean =>
  a.url === b.url &&
  a.tenant === b.tenant &&
  a.provider?.issuer === b.provider?.issuer &&
  a.provider?.clientId === b.provider?.clientId;

/** While the provider does not answer, a token that is still good does. */
async function renew(io: Io, login: Login): Promise<Login> {
  try {
    return await exchanged(io, login);
  } catch (error) {
    if (isGood(login, io.clock.now()) && codeOf(error) === 'issuer_unreachable') return login;
    throw error;
  }
}

async function exchanged(io: Io, login: Login): Promise<Login> {
  const { provider } = login;
  if (provider === undefined) return login;
  const { issuer, clientId, refreshToken } = provider;
  if (refreshToken === undefined) {
    if (isGood(login, io.clock.now())) return login;
    throw over(login, 'the provider gave no refresh token');
  }
  const { tokens } = await findProvider(io, issuer, clientId);
  // A refresh token is often good once: a request that was sent is waited for, 15 s at most, and saved, although the command is told to stop meanwhile.
  const { signal } = new AbortController();
  const answer = await tokens({ grant_type: 'refresh_token', refresh_token: refreshToken }, signal);
  if (answer.kind === 'silence') throw new AppError('issuer_unreachable', `${issuer} cannot be asked: ${answer.why}`);
  if (answer.kind === 'error') throw over(login, answer.description ?? answer.error);
  const { idToken, refreshToken: next = refreshToken } = answer.tokens;
  const fresh: Login = {
    ...login,
    key: idToken,
    provider: { ...provider, refreshToken: next, expiresAt: expiryOf(idToken) },
  };
  // Another login that was saved meanwhile stays, at this broker or another.
  const saved = await loadLogin(io).catch(() => undefined);
  if (saved !== undefined && isSameLogin(saved, login) && saved.provider?.refreshToken === refreshToken)
    await saveLogin(io, fresh);
  return fresh;
}

const over = ({ url, provider }: Login, why: string): AppError =>
  new AppError('unauthenticated', `the login at ${url} by ${provider?.issuer} is over: ${why}`, {
    detail: { remedy: `log in again with \`isthmus login ${url}\`` },
  });
