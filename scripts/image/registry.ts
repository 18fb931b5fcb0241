/** A client of the OCI distribution API, for pushing: blobs once, manifests by digest or tag, with the ways of authentication that registries ask for. */
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';
import type { Credentials } from './registry-credentials.ts';

export interface RegistryOptions {
  /** HOST or HOST:PORT. */
  readonly registry: string;
  readonly repository: string;
  /** Only when the user asked for it: everything travels in clear. */
  readonly plainHttp: boolean;
  readonly credentials?: Credentials;
  /** Between attempts; each is this much longer than the one before. */
  readonly patienceMs?: number;
}

export interface Registry {
  hasBlob(digest: string): Promise<boolean>;
  putBlob(digest: string, bytes: Uint8Array): Promise<void>;
  /** `name` is a tag or a digest. */
  putManifest(name: string, mediaType: string, bytes: Uint8Array): Promise<void>;
  /** Undefined when there is none. */
  getManifest(name: string, mediaType: string): Promise<Buffer | undefined>;
  getBlob(digest: string): Promise<Buffer>;
}

interface Call {
  readonly method: string;
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly accepted: readonly number[];
}

const [attempts, answerMs] = [4, 120_000];

export function openRegistry(options: RegistryOptions): Registry {
  const { registry, repository, plainHttp, patienceMs = 1_000 } = options;
  const origin = `${plainHttp ? 'http' : 'https'}://${registry}`;
  const at = (path: string): URL => new URL(`${origin}/v2/${repository}/${path}`);
  let authorization: string | undefined;

  /** Upload locations may be at another host: it gets no credentials, and its challenge names no token service. */
  const isRegistry = (url: URL): boolean => url.origin === new URL(origin).origin;

  async function send({ method, url, headers, body }: Call): Promise<Response> {
    const mine = isRegistry(url);
    return fetch(url, {
      method,
      redirect: 'manual',
      headers: { ...headers, ...(mine && authorization !== undefined && { authorization }) },
      ...(body !== undefined && { body: Buffer.from(body) }),
      signal: AbortSignal.timeout(answerMs),
    });
  }

  async function call(request: Call): Promise<Response> {
    const what = `${request.method} ${request.url.pathname} at ${request.url.host}`;
    let authorized = false;
    for (let attempt = 1; ; attempt += 1) {
      let problem: string;
      let cause: unknown;
      try {
        const answer = await send(request);
        if (request.accepted.includes(answer.status)) return answer;
        if (answer.status === 401 && !authorized && isRegistry(request.url)) {
          authorized = true;
          authorization = await authorize(answer, options);
          await answer.body?.cancel();
          attempt -= 1;
          continue;
        }
        problem = `${what} was answered with ${answer.status}${await saidBy(answer)}`;
        if (answer.status !== 429 && answer.status < 500) throw refusal(answer.status, problem, options);
      } catch (error) {
        if (error instanceof AppError) throw error;
        cause = error;
        problem = `${what} failed: ${reasonOf(error)}`;
      }
      if (attempt >= attempts)
        throw new AppError('command_failed', `${problem} (${attempts} attempts)`, {
          ...(cause !== undefined && { cause }),
        });
      await delay(patienceMs * attempt);
    }
  }

  return {
    async hasBlob(digest) {
      // Some registries send to where the blob is.
      const accepted = [200, 301, 302, 303, 307, 308, 404];
      return (await call({ method: 'HEAD', url: at(`blobs/${digest}`), accepted })).status !== 404;
    },
    async putBlob(digest, bytes) {
      const begun = await call({ method: 'POST', url: at('blobs/uploads/'), accepted: [202] });
      const location = new URL(begun.headers.get('location') ?? '', at('blobs/uploads/'));
      if (!plainHttp && location.protocol !== 'https:')
        throw new AppError('command_failed', `${registry} wants the upload in clear text, at ${location.host}`);
      location.searchParams.set('digest', digest);
      const headers = { 'content-type': 'application/octet-stream' };
      await call({ method: 'PUT', url: location, headers, body: bytes, accepted: [201] });
    },
    async putManifest(name, mediaType, bytes) {
      const headers = { 'content-type': mediaType };
      await call({ method: 'PUT', url: at(`manifests/${name}`), headers, body: bytes, accepted: [201] });
    },
    async getManifest(name, mediaType) {
      const headers = { accept: mediaType };
      const answer = await call({ method: 'GET', url: at(`manifests/${name}`), headers, accepted: [200, 404] });
      return answer.status === 404 ? undefined : Buffer.from(await answer.arrayBuffer());
    },
    async getBlob(digest) {
      const answer = await call({ method: 'GET', url: at(`blobs/${digest}`), accepted: [200] });
      return Buffer.from(await answer.arrayBuffer());
    },
  };
}

/** The header for the requests to come, by the challenge in a 401. */
async function authorize(answer: Response, options: RegistryOptions): Promise<string> {
  const { registry, repository, credentials, plainHttp } = options;
  const challenge = answer.headers.get('www-authenticate') ?? '';
  const login = `log in with \`docker login ${registry}\`, which writes docker's config.json`;
  if (/^basic\b/i.test(challenge)) {
    if (credentials !== undefined && 'username' in credentials) return basic(credentials);
    throw new AppError('unauthenticated', `${registry} wants a user name and a password, and there are none; ${login}`);
  }
  const part = (name: string): string | undefined => new RegExp(`\\b${name}="([^"]*)"`, 'i').exec(challenge)?.[1];
  const realm = part('realm');
  if (!/^bearer\b/i.test(challenge) || realm === undefined)
    throw new AppError(
      'unauthenticated',
      `${registry} asks for an unknown way of authentication; known: Basic, Bearer`,
    );
  const url = new URL(realm);
  if (!plainHttp && url.protocol !== 'https:')
    throw new AppError('unauthenticated', `${registry} sends for its tokens to ${url.host} in clear text`);
  const asked = { service: part('service') ?? '', scope: part('scope') ?? `repository:${repository}:pull,push` };
  const response = await token(url, asked, credentials);
  if (!response.ok)
    throw new AppError(
      'unauthenticated',
      `${url.host} gave no token for ${registry}/${repository}: ${response.status}${await saidBy(response)}; ${login}`,
    );
  const body = (await response.json()) as { readonly token?: string; readonly access_token?: string };
  const found = body.token ?? body.access_token;
  if (found === undefined) throw new AppError('unauthenticated', `${url.host} answered without a token`);
  return `Bearer ${found}`;
}

function token(url: URL, asked: Readonly<Record<string, string>>, credentials?: Credentials): Promise<Response> {
  const signal = AbortSignal.timeout(answerMs);
  if (credentials !== undefined && 'identityToken' in credentials) {
    const form = {
      ...asked,
      grant_type: 'refresh_token',
      client_id: 'isthmus',
      refresh_token: credentials.identityToken,
    };
    return fetch(url, { method: 'POST', body: new URLSearchParams(form), redirect: 'error', signal });
  }
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
  const headers = credentials === undefined ? {} : { authorization: basic(credentials) };
  return fetch(url, { headers, redirect: 'error', signal });
}

const basic = ({ username, password }: Extract<Credentials, { username: string }>): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

/** `: DENIED: not allowed`, of the distribution API's error list; empty when there is none. */
async function saidBy(answer: Response): Promise<string> {
  try {
    const { errors = [] } = (await answer.json()) as { errors?: readonly { code?: string; message?: string }[] };
    return errors.map(({ code, message }) => `: ${[code, message].filter(Boolean).join(': ')}`).join('');
  } catch {
    return '';
  }
}

/** fetch says `fetch failed` and keeps the reason in its cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}

function refusal(status: number, problem: string, { registry }: RegistryOptions): AppError {
  if (status === 401) return new AppError('unauthenticated', `${problem}; log in with \`docker login ${registry}\``);
  if (status === 403) return new AppError('forbidden', `${problem}; these credentials may not push there`);
  return new AppError('command_failed', problem);
}
