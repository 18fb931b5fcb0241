/** The REST API from the browser: the session's cookie or a key in memory, the broker's own problems, patience with one that restarts. */
import { signal } from '@preact/signals';
import { type ApiRequest, createBrokerApi, type Problem } from '#shared/api-client/broker-api.ts';
import type { Member } from '../model/rights.ts';

export type Holder = Member | { readonly kind: 'operator'; readonly principal: string } | { readonly kind: 'none' };

interface BrokerFacts {
  readonly url: string;
  /** Of its certificate authority; empty: a public one. */
  readonly caHash: string;
}

/** What `isthmus login` is told; known of a broker that keeps sessions. */
export const brokerFacts = signal<BrokerFacts | undefined>(undefined);

/** Undefined until the broker has said. */
export const holder = signal<Holder | undefined>(undefined);

export class Refused extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** The broker did not answer. */
export class Unreachable extends Error {}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** How long the broker may think; 15 s unless told. */
  readonly timeoutMs?: number;
  /** Once only: the caller repeats it itself. */
  readonly once?: boolean;
  /** Refused with `precondition_failed` when the object has another version. */
  readonly ifVersion?: number;
  /** Goes on when the page is left or loaded again meanwhile. */
  readonly outlivesPage?: boolean;
}

/** Only where the broker has no sessions, in the cloud: gone with the tab. */
let bearer: { readonly key: string; readonly tenant?: string | undefined } | undefined;

/** What a server of files says of a path that only a broker with sessions has. */
const unknownPath = (status: number): Problem => ({
  type: 'about:blank',
  title: '',
  status,
  detail: `the broker answered with status ${status}`,
  code: 'not_found',
  requestId: '',
  retryable: false,
  remedy: '',
});

const pausesMs = [300, 1_000, 2_500];
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const headersOf = (
  method: string,
  key: string,
  body: boolean,
  ifVersion: number | undefined,
): Record<string, string> => ({
  accept: 'application/json',
  'isthmus-console': '1',
  ...(bearer !== undefined && { authorization: `Bearer ${bearer.key}` }),
  ...(bearer?.tenant !== undefined && { 'isthmus-tenant': bearer.tenant }),
  ...(ifVersion !== undefined && { 'if-match': `"${ifVersion}"` }),
  ...(method === 'POST' && { 'idempotency-key': key }),
  ...(body && { 'content-type': 'application/json' }),
});

async function once(call: Pick<ApiRequest, 'method' | 'path' | 'query' | 'body'>, options: CallOptions, key: string) {
  const query = new URLSearchParams(
    Object.entries(call.query ?? {}).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  ).toString();
  const life = new AbortController();
  const timer = setTimeout(() => life.abort(), options.timeoutMs ?? 15_000);
  const end = (): void => life.abort();
  options.signal?.addEventListener('abort', end);
  try {
    const answer = await fetch(`${call.path}${query === '' ? '' : `?${query}`}`, {
      method: call.method,
      credentials: 'same-origin',
      headers: headersOf(call.method, key, call.body !== undefined, options.ifVersion),
      signal: life.signal,
      ...(options.outlivesPage && { keepalive: true }),
      ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
    }).catch(() => {
      throw new Unreachable('the broker did not answer');
    });
    const text = await answer.text();
    const json = /json/.test(answer.headers.get('content-type') ?? '') && text !== '' ? JSON.parse(text) : undefined;
    if (answer.ok) return json;
    if (answer.status === 401) holder.value = { kind: 'none' };
    if (json?.code !== undefined) throw new Refused(json as Problem);
    if (answer.status < 500) throw new Refused(unknownPath(answer.status));
    throw new Unreachable(`the broker answered with status ${answer.status}`);
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', end);
  }
}

async function call(
  request: Pick<ApiRequest, 'method' | 'path' | 'query' | 'body'>,
  options: CallOptions = {},
): Promise<unknown> {
  const key = crypto.randomUUID();
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await once(request, options, key);
    } catch (error) {
      const pause = pausesMs[attempt];
      const passing =
        error instanceof Unreachable || (error instanceof Refused && error.problem.code === 'in_progress');
      if (!passing || options.once || options.signal?.aborted || pause === undefined) throw error;
      await sleep(pause);
    }
  }
}

export const api = createBrokerApi<CallOptions>((request, options) => call(request, options));

const session = '/console/session';

type Session = Holder & { readonly broker?: BrokerFacts };

function take({ broker, ...found }: Session): void {
  brokerFacts.value = broker;
  holder.value = found as Holder;
}

/** Sets `holder`. Where the broker keeps no sessions, there is none before `logIn`. */
export async function resume(): Promise<void> {
  // A login by an identity provider ends in the page that asks this: its key is held here.
  if (bearer !== undefined) return;
  const found = (await call({ method: 'GET', path: session }).catch((error: unknown) => {
    if (error instanceof Refused) return { kind: 'none' };
    throw error;
  })) as Session | undefined;
  take(found ?? { kind: 'none' });
}

/** Rejects when the broker does not know the key; a token of an identity provider is for the named tenant. */
export async function logIn(key: string, tenant?: string): Promise<void> {
  try {
    const body = { key, ...(tenant !== undefined && { tenant }) };
    take((await call({ method: 'POST', path: session, body })) as Session);
  } catch (error) {
    const noSessions = error instanceof Refused && error.problem.code === 'not_found';
    if (!noSessions) throw error;
    bearer = { key, tenant };
    try {
      holder.value = { kind: 'member', ...(await api.getMe()) } as Member;
    } catch (refusal) {
      bearer = undefined;
      throw refusal;
    }
  }
}

/** Whether the page itself holds this key, as at a broker without sessions. */
export const holdsKey = (key: string): boolean => bearer?.key === key;

/** False when the page holds another key by now, or none. */
export function replaceKey(key: string, by: string): boolean {
  if (bearer === undefined || !holdsKey(key)) return false;
  bearer = { ...bearer, key: by };
  return true;
}

/** Rejects when the session still exists. */
export async function logOut(): Promise<void> {
  if (bearer === undefined) await call({ method: 'DELETE', path: session }, { outlivesPage: true });
  bearer = undefined;
  holder.value = { kind: 'none' };
}

export const isStale = (error: unknown): boolean =>
  error instanceof Refused && error.problem.code === 'precondition_failed';

interface Page<T> {
  readonly items: T[];
  readonly cursor?: string | undefined;
}

/** The items of all pages. */
export async function all<T>(
  ask: (page: { readonly limit: number; readonly cursor: string | undefined }) => Promise<Page<T>>,
  most = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await ask({ limit: 200, cursor });
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined && items.length < most);
  return items;
}

export const messageOf = (error: unknown): string =>
  error instanceof Refused
    ? `${error.problem.detail}${error.problem.remedy === '' ? '' : ` What to do: ${error.problem.remedy}`}`
    : error instanceof Error
      ? error.message
      : String(error);
