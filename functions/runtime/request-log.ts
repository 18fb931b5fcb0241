/**
 * The access log of the functions: one line for each request, with its tenant, caller, route, outcome and duration. Bodies, queries and credentials never.
 * API Gateway's own access log has the same request ids and cannot know the tenant.
 */
import type { MiddlewareObj } from '@middy/core';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { codes } from '#shared/errors/codes.ts';
import { compositionOf } from './composition.ts';
import { embeddedMetrics } from './embedded-metrics.ts';
import { appErrorOf } from './problem.ts';
import type { AnyPrincipal, AnyRoute } from './route.ts';

type Middleware = MiddlewareObj<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>;

/** The message by which queries, metric filters and people find these lines. */
export const requestMessage = 'request';

/** What became known of a request while it was handled. */
export interface Known {
  readonly principal?: AnyPrincipal | undefined;
  /** A long poll: its duration says nothing about the broker. */
  readonly waited: boolean;
}

/** `tenant` is absent for operators, and until the credentials are verified. */
function callerFields({ caller, agent, operator }: AnyPrincipal): {
  readonly tenant?: string;
  readonly principal?: string;
} {
  const { tenant, principal } = { tenant: undefined, principal: undefined, ...operator, ...agent, ...caller };
  return { ...(tenant !== undefined && { tenant }), ...(principal !== undefined && { principal }) };
}

export function requestLog(
  route: Pick<AnyRoute, 'method' | 'path' | 'auth'>,
  known: (event: APIGatewayProxyEventV2) => Known,
): Middleware {
  const startedAt = new WeakMap<object, number>();
  // Probes of load balancers need no key: one line for each would bury the rest.
  const level = route.auth === 'none' ? 'debug' : 'info';
  const write = (
    request: Parameters<NonNullable<Middleware['after']>>[0],
    outcome: { readonly status: number; readonly code?: string },
  ) => {
    const { clock, log, metricsBroker: broker } = compositionOf(request.context);
    const { requestId, http } = request.event.requestContext;
    const { principal = {}, waited } = known(request.event);
    const at = clock.now();
    const ms = at - (startedAt.get(request.event) ?? at);
    log[level](requestMessage, {
      requestId,
      ...callerFields(principal),
      route: `${route.method} ${route.path}`,
      from: http.sourceIp,
      ms,
      ...(waited && { waited }),
      ...outcome,
      ...(broker !== undefined && embeddedMetrics({ broker, principal, waited, ms, at, status: outcome.status })),
    });
  };
  return {
    before: ({ event, context }) => {
      startedAt.set(event, compositionOf(context).clock.now());
    },
    after: (request) => write(request, { status: request.response?.statusCode ?? 200 }),
    onError: (request) => {
      const { code } = appErrorOf(request.error);
      write(request, { status: codes[code].http, code });
    },
  };
}
