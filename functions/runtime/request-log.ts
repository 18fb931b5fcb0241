/** One log line per request: caller, route, outcome, duration. Bodies and credentials never. */
import type { MiddlewareObj } from '@middy/core';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { compositionOf } from './composition.ts';
import { appErrorOf } from './problem.ts';
import type { AnyRoute } from './route.ts';

type Middleware = MiddlewareObj<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>;

export function requestLog(route: Pick<AnyRoute, 'method' | 'path'>): Middleware {
  const startedAt = new WeakMap<object, number>();
  const write = (request: Parameters<NonNullable<Middleware['after']>>[0], outcome: Record<string, unknown>) => {
    const { clock, log } = compositionOf(request.context);
    const { requestId, http } = request.event.requestContext;
    log.debug('request', {
      requestId,
      route: `${route.method} ${route.path}`,
      from: http.sourceIp,
      ms: clock.now() - (startedAt.get(request.event) ?? clock.now()),
      ...outcome,
    });
  };
  return {
    before: ({ event, context }) => {
      startedAt.set(event, compositionOf(context).clock.now());
    },
    after: (request) => write(request, { status: request.response?.statusCode }),
    onError: (request) => write(request, { code: appErrorOf(request.error).code }),
  };
}
