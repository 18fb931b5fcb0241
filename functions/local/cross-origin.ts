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

/** Only paths of the API: sessions of the console are for its own origin. Credentials of a browser (cookies) are never allowed. */
export function withCrossOrigin(otherwise: RequestListener, origins: readonly string[], ids: Ids): RequestListener {
  if (origins.length === 0) return otherwise;
  const allowed = new Set(origins);
  return (request, response) => {
    if (!splitUrl(request.url ?? '').rawPath.startsWith('/v1/')) return otherwise(request, response);
    response.setHeader('vary', 'origin');
    const { origin, 'access-control-request-method': method } = request.headers;
    const preflight = request.method === 'OPTIONS' && origin !== undefined && method !== undefined;
    if (origin !== undefined && allowed.has(origin)) {
      response.setHeader('access-control-allow-origin', origin);
      if (!preflight) {
        response.setHeader('access-control-expose-headers', crossOriginAnswerHeaders.join(','));
        return otherwise(request, response);
      }
      response.writeHead(204, {
        'access-control-allow-methods': crossOriginMethods.join(','),
        'access-control-allow-headers': crossOriginRequestHeaders.join(','),
        'access-control-max-age': String(crossOriginSeconds),
      });
      return response.end();
    }
    if (!preflight) return otherwise(request, response);
    const refused = new AppError(
      'forbidden',
      `pages of ${JSON.stringify(origin)} may not use this broker; its operator lets them in with --cors-origin`,
      { detail: { field: 'origin', value: origin } },
    );
    sendResult(response, request, problemResponse(refused, ids.next('req')));
  };
}
