/** Lets pages of named origins use the REST API, as the HTTP API of the hosted broker does: answers preflights, and names the origin that may read. */
import type { RequestListener } from 'node:http';
import { problemResponse } from '#functions/runtime/problem.ts';
import {
  crossOriginAnswerHeaders,
  crossOriginMethods,
  crossOriginRequestHeaders,
  crossOriginSeconds,
  isOrigin,
} from '#shared/domain/cross-origin.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Ids } from '#shared/ports/ids.ts';
import { splitUrl } from './gateway-event.ts';
import { sendResult } from './http-gateway.ts';

/** Throws `invalid_input` naming the one that is none. */
export function checkOrigins(origins: readonly string[]): readonly string[] {
  for (const origin of origins) {
    if (isOrigin(origin)) continue;
    throw new AppError(
      'invalid_input',
      `cors-origin is ${JSON.stringify(origin)}, accepted is an origin as browsers send it, for example https://portal.example.com`,
      { detail: { field: 'cors-origin', value: origin } },
    );
  }
  return origins;
}

const preflightHeaders = {
  'access-control-allow-methods': crossOriginMethods.join(','),
  'access-control-allow-headers': crossOriginRequestHeaders.join(','),
  'access-control-max-age': String(crossOriginSeconds),
};

/** Only paths of the API: sessions of the console are for its own origin. Credentials of a browser (cookies) are never allowed. */
export function withCrossOrigin(otherwise: RequestListener, origins: readonly string[], ids: Ids): RequestListener {
  if (origins.length === 0) return otherwise;
  const allowed = new Set(origins);
  return (request, response) => {
    if (!splitUrl(request.url ?? '').rawPath.startsWith('/v1/')) return otherwise(request, response);
    response.setHeader('vary', 'origin');
    const { origin, 'access-control-request-method': method } = request.headers;
    const letIn = origin !== undefined && allowed.has(origin);
    if (letIn) response.setHeader('access-control-allow-origin', origin);
    if (request.method === 'OPTIONS' && origin !== undefined && method !== undefined) {
      const answer = letIn ? { statusCode: 204, headers: preflightHeaders } : refusal(origin, ids.next('req'));
      return sendResult(response, request, answer);
    }
    if (letIn) response.setHeader('access-control-expose-headers', crossOriginAnswerHeaders.join(','));
    otherwise(request, response);
  };
}

const refusal = (origin: string, requestId: string) =>
  problemResponse(
    new AppError(
      'forbidden',
      `pages of ${JSON.stringify(origin)} may not use this broker; its operator lets them in with --cors-origin`,
      { detail: { field: 'origin', value: origin } },
    ),
    requestId,
  );
