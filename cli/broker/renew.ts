/** Tokens of a login by an identity provider end within minutes or hours; each command renews them by the refresh token before they do. */
import { mkdir, rm, stat } from 'node:fs/promises';
import type { CliIo } from '#cli/output/io.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { configFile, type Login, loadLogin, saveLogin } from './login-config.ts';
import { expiryOf } from './provider-login/id-token.ts';
import { findProvider } from './provider-login/provider.ts';

/** Renewed this long before the end, so that a request in flight and a slow clock do not meet it. */
const marginMs = 60_000;
const lockPauseMs = 100;
/** Longer than a renewal may take: discovery and one request of 15 s each. */
const lockLifeMs = 40_000;

type Io = Pick<CliIo, 'clock' | 'signal' | 'env' | 'home'>;

const isFresh = ({ provider }: Login, now: number): boolean =>
  provider === undefined || provider.expiresAt - now > marginMs;

const isSame = (one: Login, other: Login): boolean =>
  one.url === other.url &&
  one.tenant === other.tenant &&
  one.provider?.issuer === other.provider?.issuer &&
  one.provider?.clientId === other.provider?.clientId;

/**
 * The login as it is when its token is good for another minute; else the renewed one, which is saved, unless another login was saved while the command
 * ran: that one stays. Fails with `unauthenticated` when it is over.
 */
export async function renewed(io: Io, login: Login): Promise<Login> {
  if (isFresh(login, io.clock.now())) return login;
  return exclusively(io, async () => {
    // Refresh tokens are often good once: another command may have used ours, and has saved what it got.
    const saved = await loadLogin(io);
    if (!isSame(saved, login)) return renew(io, login);
    if (isFresh(saved, io.clock.now())) return saved;
    const fresh = await renew(io, saved);
    if (fresh !== saved) await saveLogin(io, fresh);
    return fresh;
  });
}

async function renew(io: Io, login: Login): Promise<Login> {
  const { provider } = login;
  if (provider === undefined) return login;
  const { issuer, clientId, refreshToken, expiresAt } = provider;
  if (refreshToken === undefined) {
    if (expiresAt > io.clock.now()) return login;
    throw over(login, 'the provider gave no refresh token');
  }
  const { tokens } = await findProvider(io, issuer, clientId);
  const answer = await tokens({ grant_type: 'refresh_token', refresh_token: refreshToken });
  if (answer.kind === 'silence') throw new AppError('issuer_unreachable', `${issuer} cannot be asked: ${answer.why}`);
  if (answer.kind === 'error') throw over(login, answer.description ?? answer.error);
  const { idToken, refreshToken: next = refreshToken } = answer.tokens;
  return { ...login, key: idToken, provider: { ...provider, refreshToken: next, expiresAt: expiryOf(idToken) } };
}

const over = ({ url, provider }: Login, why: string): AppError =>
  new AppError('unauthenticated', `the login at ${url} by ${provider?.issuer} is over: ${why}`, {
    detail: { remedy: `log in again with \`isthmus login ${url}\`` },
  });

/** One renewal at a time between the commands of this user: a folder is made by one process only. That of a process that was killed is taken after 40 s. */
async function exclusively<T>(io: Io, work: () => Promise<T>): Promise<T> {
  const folder = `${configFile(io)}.renewing`;
  for (;;) {
    try {
      await mkdir(folder);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const since = await stat(folder).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    );
    if (since !== undefined && io.clock.now() - since > lockLifeMs) await rm(folder, { recursive: true, force: true });
    else await io.clock.sleep(lockPauseMs, io.signal);
  }
  try {
    return await work();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
