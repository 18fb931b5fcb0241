/**
 * GET /ready, for what watches this process: 200 when it takes changes, otherwise a problem document whose code tells a full disk from a
 * database that cannot be written and from a process that has too much to do. GET /v1/health only says that it runs.
 */
import type { RequestListener } from 'node:http';
import { problemResponse } from '#functions/runtime/problem.ts';
import { splitUrl } from './gateway-event.ts';

export const withReadiness =
  (otherwise: RequestListener, ready: () => Promise<void>): RequestListener =>
  (request, response) => {
    const asksThis = splitUrl(request.url ?? '').rawPath === '/ready' && ['GET', 'HEAD'].includes(request.method ?? '');
    if (!asksThis) return otherwise(request, response);
    ready().then(
      () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ready"}'),
      (error: unknown) => {
        const { statusCode = 503, headers, body } = problemResponse(error, '');
        response.writeHead(statusCode, headers as Record<string, string>).end(body);
      },
    );
  };
