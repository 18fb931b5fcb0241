/**
 * The stack around every HTTP function: authentication, parsed input, one use case, JSON answer, problem details. A function file names its
 * route once; the gateway, the local router and the OpenAPI document all read it from there.
 */
import middy from '@middy/core';
import type {
  APIGatewayProxyEventV2,
  APIGatewayProxyResultV2,
  APIGatewayProxyStructuredResultV2,
  Context,
} from 'aws-lambda';
import * as z from 'zod';
import { type AgentCaller, type Caller, mustHave, type OperatorCaller, type Repeat } from '#control/access/caller.ts';
import type { Control } from '#control/control.ts';
import type { SignedRequest } from '#control/model/cluster.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import {
  authenticateAgent,
  authenticateMember,
  authenticateOperator,
  originOf,
  signedRequestOf,
} from './authenticate.ts';
import { type Composition, compositionOf } from './composition.ts';
import { deprecationHeaders } from './deprecation.ts';
import { jsonBodyOf } from './json-body.ts';
import { inputError, problemDetails } from './problem.ts';
import { noteStanding, rateHeaders } from './rate-headers.ts';
import { answerReserveMs, withinDeadline } from './request-deadline.ts';
import { requestLog } from './request-log.ts';
import type { AnyPrincipal, AnyRoute, Auth, Reply, Route } from './route.ts';
import { runOnce } from './run-once.ts';

type Principal<A extends Auth> = A extends 'key'
  ? { readonly caller: Caller }
  : A extends 'operator'
    ? { readonly operator: OperatorCaller }
    : A extends 'agent'
      ? { readonly agent: AgentCaller }
      : A extends 'enroll'
        ? { readonly signed: SignedRequest }
        : object;

export type Input<A extends Auth, P, Q, B> = Principal<A> & {
  readonly control: Control;
  readonly clock: Clock;
  readonly version: string;
  readonly listen: Composition['listen'];
  readonly longestWaitSeconds?: number;
  readonly doorbellUrl?: string;
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

/** A name that no object can have is not found; the store is not asked. */
function decodedPath(parameters: APIGatewayProxyEventV2['pathParameters']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parameters ?? {}).map(([name, raw = '']) => {
      const value = decoded(raw);
      if (value === undefined || !/^[\x21-\x7e]{1,253}$/.test(value)) {
        throw new AppError('not_found', `there is no ${name} of that name`, { detail: { parameter: name } });
      }
      return [name, value];
    }),
  );
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function parsed<S extends z.ZodType>(schema: S | undefined, where: string, input: unknown): z.output<S> {
  if (schema === undefined) return undefined as z.output<S>;
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw inputError(where, result.error, input);
}

/** A misspelt parameter must not be taken for one that was left out. Agents may be newer than the broker and say more. */
const strict = <S extends z.ZodType>(schema: S | undefined, auth: Auth): S | undefined =>
  schema instanceof z.ZodObject && (auth === 'key' || auth === 'operator') ? (schema.strict() as unknown as S) : schema;

const defaultMaxBody = 256 * 1024;
const agentMaxBody = 6 * 1024 * 1024;

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
  const query = strict(route.query, route.auth);
  const bodySchema = strict(route.body, route.auth);
  const maxBody =
    route.maxBodyBytes ?? (route.auth === 'agent' || route.auth === 'enroll' ? agentMaxBody : defaultMaxBody);
  const answer = async (
    event: APIGatewayProxyEventV2,
    context: Context,
    signal: AbortSignal,
  ): Promise<APIGatewayProxyStructuredResultV2> => {
    const composition = compositionOf(context);
    const { clock, version, longestWaitSeconds, doorbellUrl } = composition;
    const principal = principals.get(event) ?? {};
    const { caller } = principal;
    const control = (caller && composition.controlOf?.(caller.tenant)) ?? composition.control;
    const body = route.body === undefined ? undefined : jsonBodyOf(event, maxBody);
    const input = {
      ...principal,
      control,
      clock,
      version,
      listen: metered(composition, () => waited.add(event)),
      longestWaitSeconds,
      doorbellUrl,
      path: parsed(route.pathParameters, 'path', decodedPath(event.pathParameters)),
      query: parsed(query, 'query', event.queryStringParameters ?? {}),
      body: parsed(bodySchema, 'body', body),
      headers: event.headers,
      signal,
    } as unknown as Input<A, z.output<P>, z.output<Q>, z.output<B>>;
    const reply = await runOnce({ route, event, principal, control, signal, body }, (repeat) =>
      work(repeat ? repeatable(input, repeat) : input),
    );
    return respond(await settle(reply, input), event);
  };

  const run = (event: APIGatewayProxyEventV2, context: Context): Promise<APIGatewayProxyStructuredResultV2> =>
    withinDeadline(context, (signal) => answer(event, context, signal));

  const stack = middy<APIGatewayProxyEventV2, APIGatewayProxyResultV2>({ timeoutEarlyInMillis: answerReserveMs })
    .use(problemDetails())
    .use(requestLog(route, (event) => ({ principal: principals.get(event), waited: waited.has(event) })))
    .before(async ({ event, context }) => {
      await admit(route as unknown as AnyRoute, event, context);
    });
  const handler = stack.handler(run as never) as unknown as (
    event: APIGatewayProxyEventV2,
    context: Context,
  ) => Promise<APIGatewayProxyResultV2>;
  const { deprecated } = route;
  const answering =
    deprecated === undefined
      ? handler
      : async (event: APIGatewayProxyEventV2, context: Context): Promise<APIGatewayProxyResultV2> => {
          const answer = (await handler(event, context)) as APIGatewayProxyStructuredResultV2;
          return { ...answer, headers: { ...answer.headers, ...deprecationHeaders(deprecated) } };
        };
  return Object.assign((event: APIGatewayProxyEventV2, context: Context) => answering(event, context), {
    route: { ...route, query, body: bodySchema } as unknown as AnyRoute,
  });
}
/**
 * Waiting costs what asking again each second would cost: a request that waits holds a function, and looks at the store again. At the limit the wait
 * rejects, and the answer is the state as it is.
 */
function metered({ control, clock, listen }: Composition, onWait: () => void): Composition['listen'] {
  let paidUntil = clock.now() + paidWaitMs;
  return (tenant, names) => {
    const { changed, end } = listen(tenant, names);
    onWait();
    return {
      async changed(withinMs, signal) {
        if (clock.now() >= paidUntil) {
          paidUntil = clock.now() + paidWaitMs;
          await control.tenants.admit(tenant, 'requests', signal);
        }
        return changed(withinMs, signal);
      },
      end,
    };
  };
}
const paidWaitMs = 1_000;

/** The same input, whose caller or operator tells the use case of the repetition. */
const repeatable = <I>(input: I, repeat: Repeat): I => {
  const { caller, operator } = input as AnyPrincipal;
  return {
    ...input,
    ...(caller && { caller: { ...caller, repeat } }),
    ...(operator && { operator: { ...operator, repeat } }),
  };
};

/** From the authentication step to the work and to the log of the same event, without widening the event's own shape. */
const principals = new WeakMap<APIGatewayProxyEventV2, AnyPrincipal>();
const waited = new WeakSet<APIGatewayProxyEventV2>();

/** Authentication, rate limit of the tenant, authorization for this route: in that order, before any input is read. A request that is refused after the first has its tenant in the log. */
async function admit(route: AnyRoute, event: APIGatewayProxyEventV2, context: Context): Promise<void> {
  const { control, onMember } = compositionOf(context);
  const { tenants } = control;
  const { authorization = '' } = event.headers;
  switch (route.auth) {
    case 'none':
      return;
    case 'key': {
      const caller = await authenticateMember(control, event.headers, originOf(event)).catch((error: unknown) => {
        onMember?.(authorization, undefined);
        throw error;
      });
      onMember?.(authorization, caller.tenant);
      principals.set(event, { caller });
      noteStanding(event, await tenants.admit(caller.tenant, 'requests'));
      if (route.whileDeleting) await tenants.mustServe(caller.tenant);
      else if (route.method !== 'GET') await tenants.mustBeActive(caller.tenant);
      if (route.permission !== undefined) mustHave(caller, route.permission);
      return;
    }
    case 'operator':
      principals.set(event, { operator: await authenticateOperator(control, event, originOf(event)) });
      return;
    case 'agent': {
      const agent = await authenticateAgent(control, signedRequestOf(event));
      principals.set(event, { agent });
      await tenants.mustServe(agent.tenant);
      noteStanding(event, await tenants.admit(agent.tenant, 'events'));
      return;
    }
    case 'enroll':
      principals.set(event, { signed: signedRequestOf(event) });
      return;
  }
}

/** Everything that has a version can be read and changed conditionally. */
const etagOf = (body: unknown): string | undefined =>
  typeof body === 'object' && body !== null && 'version' in body && typeof body.version === 'number'
    ? `"${body.version}"`
    : undefined;

function respond(reply: Reply, event: APIGatewayProxyEventV2): APIGatewayProxyStructuredResultV2 {
  const { body, text } = reply;
  const content = text?.content ?? (body === undefined ? undefined : JSON.stringify(body));
  const etag = etagOf(body);
  return {
    statusCode: reply.status ?? (content === undefined ? 204 : 200),
    headers: {
      ...(content !== undefined && { 'content-type': text?.type ?? 'application/json' }),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-request-id': event.requestContext.requestId,
      ...rateHeaders(event),
      ...(etag !== undefined && { etag }),
      ...reply.headers,
    },
    ...(content !== undefined && { body: content }),
  };
}
