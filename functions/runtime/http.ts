/**
 * The stack around every HTTP function: authentication, parsed input, one use case, JSON answer, problem details. A function file names its
 * route once; the gateway, the local router and the OpenAPI document all read it from there.
 */
import middy from '@middy/core';
import jsonBody from '@middy/http-json-body-parser';
import type {
  APIGatewayProxyEventV2,
  APIGatewayProxyResultV2,
  APIGatewayProxyStructuredResultV2,
  Context,
} from 'aws-lambda';
import type * as z from 'zod';
import type { AgentCaller, Caller, Permission } from '#control/access/caller.ts';
import type { SignedRequest } from '#control/clusters/clusters.ts';
import type { Control } from '#control/control.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { authenticateAgent, authenticateKey, originOf, signedRequestOf } from './authenticate.ts';
import { type Composition, compositionOf } from './composition.ts';
import { inputError, problemDetails } from './problem.ts';
import { requestLog } from './request-log.ts';
import { runOnce } from './run-once.ts';

export interface Reply {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** `key`: a person's or portal's API key. `agent`: signed with the enrolled cluster key. `enroll`: signed, but not yet enrolled. */
export type Auth = 'none' | 'key' | 'agent' | 'enroll';

export interface Route<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** `/v1/clusters/{cluster}`, as the gateway writes it. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly auth: Auth;
  /** For the document; the use case itself enforces it. */
  readonly permission?: Permission;
  readonly pathParameters?: P;
  readonly query?: Q;
  readonly body?: B;
  /** Schema of the body by status. */
  readonly answers: Readonly<Record<number, { readonly description: string; readonly body?: z.ZodType }>>;
  /** POST with an API key: absent means the answer is kept for repeats; `secret` means it must not be stored. */
  readonly answerHolds?: 'secret';
}
export type AnyRoute = Route<z.ZodType, z.ZodType, z.ZodType>;

type Principal<A extends Auth> = A extends 'key'
  ? { readonly caller: Caller }
  : A extends 'agent'
    ? { readonly agent: AgentCaller }
    : A extends 'enroll'
      ? { readonly signed: SignedRequest }
      : object;

export type Input<A extends Auth, P, Q, B> = Principal<A> & {
  readonly control: Control;
  readonly clock: Clock;
  readonly version: string;
  readonly untilChange: Composition['untilChange'];
  readonly path: P;
  readonly query: Q;
  readonly body: B;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
};

export interface HttpFunction {
  (event: APIGatewayProxyEventV2, context: Context): Promise<APIGatewayProxyResultV2>;
  readonly route: AnyRoute;
}

const decodedPath = (parameters: APIGatewayProxyEventV2['pathParameters']): Record<string, string> =>
  Object.fromEntries(
    Object.entries(parameters ?? {}).map(([name, value]) => {
      try {
        return [name, decodeURIComponent(value ?? '')];
      } catch {
        return [name, value ?? ''];
      }
    }),
  );

function parsed<S extends z.ZodType>(schema: S | undefined, where: string, input: unknown): z.output<S> {
  if (schema === undefined) return undefined as z.output<S>;
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw inputError(where, result.error, input);
}

export function http<
  const A extends Auth,
  P extends z.ZodType = z.ZodUndefined,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  route: Route<P, Q, B> & { readonly auth: A },
  work: (input: Input<A, z.output<P>, z.output<Q>, z.output<B>>) => Promise<Reply>,
  /** Runs after the work, also for a replayed answer, and is never remembered: for waiting. */
  settle: (reply: Reply, input: Input<A, z.output<P>, z.output<Q>, z.output<B>>) => Promise<Reply> = async (reply) =>
    reply,
): HttpFunction {
  const run = async (
    event: APIGatewayProxyEventV2,
    context: Context,
    { signal }: { signal: AbortSignal },
  ): Promise<APIGatewayProxyStructuredResultV2> => {
    const composition = compositionOf(context);
    const { control, clock, version, untilChange } = composition;
    const principal = principals.get(event) ?? {};
    const body: unknown = event.body;
    const input = {
      ...principal,
      control,
      clock,
      version,
      untilChange,
      path: parsed(route.pathParameters, 'path', decodedPath(event.pathParameters)),
      query: parsed(route.query, 'query', event.queryStringParameters ?? {}),
      body: parsed(route.body, 'body', body),
      headers: event.headers,
      signal,
    } as unknown as Input<A, z.output<P>, z.output<Q>, z.output<B>>;
    const reply = await runOnce({ route, event, principal, control, signal, body }, () => work(input));
    return respond(await settle(reply, input), event.requestContext.requestId);
  };

  const stack = middy<APIGatewayProxyEventV2, APIGatewayProxyResultV2>({ timeoutEarlyInMillis: 500 })
    .use(problemDetails())
    .use(requestLog(route))
    .before(async ({ event, context }) => {
      principals.set(event, await principalOf(route.auth, event, context));
    });
  if (route.body !== undefined) stack.use(jsonBody());
  const handler = stack.handler(run as never) as unknown as (
    event: APIGatewayProxyEventV2,
    context: Context,
  ) => Promise<APIGatewayProxyResultV2>;
  return Object.assign((event: APIGatewayProxyEventV2, context: Context) => handler(event, context), {
    route: route as unknown as AnyRoute,
  });
}

export type AnyPrincipal = { readonly caller?: Caller; readonly agent?: AgentCaller; readonly signed?: SignedRequest };
/** From the authentication step to the work of the same event, without widening the event's own shape. */
const principals = new WeakMap<APIGatewayProxyEventV2, AnyPrincipal>();

async function principalOf(auth: Auth, event: APIGatewayProxyEventV2, context: Context): Promise<AnyPrincipal> {
  const { control } = compositionOf(context);
  switch (auth) {
    case 'none':
      return {};
    case 'key':
      return { caller: await authenticateKey(control, event.headers.authorization, originOf(event)) };
    case 'agent':
      return { agent: await authenticateAgent(control, signedRequestOf(event)) };
    case 'enroll':
      return { signed: signedRequestOf(event) };
  }
}

/** Everything that has a version can be read and changed conditionally. */
const etagOf = (body: unknown): string | undefined =>
  typeof body === 'object' && body !== null && 'version' in body && typeof body.version === 'number'
    ? `"${body.version}"`
    : undefined;

function respond(reply: Reply, requestId: string): APIGatewayProxyStructuredResultV2 {
  const statusCode = reply.status ?? (reply.body === undefined ? 204 : 200);
  const etag = etagOf(reply.body);
  return {
    statusCode,
    headers: {
      ...(reply.body !== undefined && { 'content-type': 'application/json' }),
      'cache-control': 'no-store',
      'x-request-id': requestId,
      ...(etag !== undefined && { etag }),
      ...reply.headers,
    },
    ...(reply.body !== undefined && { body: JSON.stringify(reply.body) }),
  };
}
