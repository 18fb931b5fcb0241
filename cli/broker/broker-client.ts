/** The REST API as the commands use it: typed answers, the broker's own errors, patience with a broker that is just restarting. */

import { Agent, request } from 'node:https';
import type { ZodType } from 'zod';
import type { CliIo } from '#cli/output/io.ts';
import { reported } from '#kube/http/exchange-reports.ts';
import { answers } from '#shared/api-client/answers.ts';
import {
  type ApiRequest,
  type BrokerApi,
  createBrokerApi,
  type OperationName,
  operations,
} from '#shared/api-client/broker-api.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { codes, type ErrorCode } from '#shared/errors/codes.ts';
import { Problem } from '#shared/schema/api/resources.ts';
import { type Login, loadLogin } from './login-config.ts';
import { renewed } from './renew.ts';

interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** A POST that may simply be repeated: no Idempotency-Key, hence no waiting for an attempt that a crash cut short. */
  readonly repeatable?: boolean;
  /** How long the broker may think; default 15 s. */
  readonly timeoutMs?: number;
}

export interface BrokerClient {
  readonly url: string;
  /** Every operation; answers are checked against the schema that the broker answers from. */
  readonly api: BrokerApi<CallOptions>;
  /** What is no JSON, with the headers that came with it. */
  text(
    operation: OperationName,
    query?: ApiRequest['query'],
  ): Promise<{ readonly text: string; readonly headers: Headers }>;
  /** The items of all pages, each asked for with what `ask` is given. */
  all<T>(ask: (page: PageQuery) => Promise<Page<T>>, most?: number): Promise<T[]>;
  close(): void;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

interface PageQuery {
  readonly limit: number;
  readonly cursor: string | undefined;
}

interface Page<T> {
  readonly items: T[];
  readonly cursor?: string | undefined;
}

const defaultTimeoutMs = 15_000;
/** Every call is safe to repeat: GET and DELETE by nature, POST by its Idempotency-Key where it is not. */
const pausesMs = [200, 800, 2_000];

export const openBroker = async (io: CliIo): Promise<BrokerClient> => createBrokerClient(io, await loadLogin(io));

type Io = Pick<CliIo, 'clock' | 'signal' | 'randomId' | 'env' | 'home'>;

export function createBrokerClient(io: Io, first: Login): BrokerClient {
  let login = first;
  const url = login.url.replace(/\/+$/, '');
  const agent = new Agent({ keepAlive: true, ...(login.caPem !== undefined && { ca: login.caPem }) });

  async function once(call: ApiRequest, options: CallOptions, key: string): Promise<Received> {
    const query = new URLSearchParams(
      Object.entries(call.query ?? {}).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)] as [string, string]],
      ),
    ).toString();
    const text = call.body === undefined ? undefined : JSON.stringify(call.body);
    const target = new URL(`${url}${call.path}${query === '' ? '' : `?${query}`}`);
    const sent = {
      agent,
      method: call.method,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${login.key}`,
        ...(login.tenant !== undefined && { 'isthmus-tenant': login.tenant }),
        ...options.headers,
        ...(call.method === 'POST' && !options.repeatable && { 'idempotency-key': key }),
        ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
      signal: abortsWith(io.signal, AbortSignal.timeout(options.timeoutMs ?? defaultTimeoutMs)),
      ...(text !== undefined && { body: text }),
    };
    const what = { method: call.method, origin: target.origin, path: target.pathname };
    return reported(
      what,
      () => io.clock.now(),
      () => exchange(target, sent),
    );
  }

  async function patiently(call: ApiRequest, options: CallOptions = {}): Promise<Received> {
    const key = io.randomId();
    login = await renewed(io, login);
    for (let attempt = 0; ; attempt++) {
      try {
        const received = await once(call, options, key);
        if (received.status < 400) return received;
        throw errorOf(received, url);
      } catch (error) {
        io.signal.throwIfAborted();
        const pause = pausesMs[attempt];
        const worthIt = ['broker_unreachable', 'rate_limited', 'in_progress'].includes(codeOf(error) ?? '');
        if (pause === undefined || !worthIt) throw error;
        await io.clock.sleep(pause, io.signal);
      }
    }
  }

  const api = createBrokerApi<CallOptions>(async (call, options) => {
    const { body } = await patiently(call, options);
    const parsed = schemaOf(call.operation)?.safeParse(body);
    if (parsed === undefined) return body;
    if (parsed.success) return parsed.data;
    throw new AppError('broker_unreachable', `the broker at ${url} answered ${call.path} in an unknown form`, {
      cause: parsed.error,
      detail: { remedy: 'check that the URL is that of an Isthmus broker, of the version of this command line' },
    });
  });

  return {
    url,
    api,
    async text(operation, query) {
      const [method, path] = operations[operation];
      const { text, headers } = await patiently({ operation, method, path, ...(query && { query }) });
      return { text, headers };
    },
    async all<T>(ask: (page: PageQuery) => Promise<Page<T>>, most = Number.POSITIVE_INFINITY) {
      const items: T[] = [];
      let cursor: string | undefined;
      do {
        const answer = await ask({ limit: Math.min(200, most - items.length), cursor });
        items.push(...answer.items);
        cursor = answer.cursor;
      } while (cursor !== undefined && items.length < most);
      return items;
    },
    close: () => agent.destroy(),
  };
}

/** Undefined for what is passed on as it came. */
const schemaOf = (operation: OperationName): ZodType | undefined =>
  operation in answers ? answers[operation as keyof typeof answers] : undefined;

interface Received {
  readonly status: number;
  readonly body: unknown;
  readonly text: string;
  readonly headers: Headers;
}

interface Sent {
  readonly agent: Agent;
  readonly method: string;
  readonly headers: Record<string, string | number>;
  readonly signal: AbortSignal;
  readonly body?: string;
}

function exchange(url: URL, { body, ...options }: Sent): Promise<Received> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) =>
      reject(
        new AppError('broker_unreachable', `the broker at ${url.origin} did not answer: ${reasonOf(cause)}`, {
          cause,
          detail: { url: url.origin },
        }),
      );
    const sent = request(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({
          status: response.statusCode ?? 0,
          body: text === '' ? undefined : parse(text),
          text,
          headers: response.headers,
        });
      });
    });
    sent.on('error', fail);
    sent.end(body);
  });
}

function reasonOf(error: Error): string {
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return 'no answer in time';
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'DEPTH_ZERO_SELF_SIGNED_CERT' || code === 'SELF_SIGNED_CERT_IN_CHAIN' || code?.startsWith('UNABLE_TO_'))
    return `its certificate is not the one trusted at login (${code}); log in again`;
  return error.message;
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

function errorOf({ status, body }: Received, url: string): AppError {
  const problem = Problem.safeParse(body);
  if (!problem.success) {
    const code: ErrorCode = status === 401 ? 'unauthenticated' : status === 404 ? 'not_found' : 'broker_unreachable';
    return new AppError(code, `the broker at ${url} answered with status ${status}`);
  }
  const { code, detail, errors, requestId, remedy } = problem.data;
  const known = Object.hasOwn(codes, code) ? (code as ErrorCode) : 'internal';
  return new AppError(known, detail, { detail: { ...(errors && { errors }), requestId, remedy } });
}
