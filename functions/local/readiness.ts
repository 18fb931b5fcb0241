/**
 * GET /ready, for what watches this process: 200 when it takes changes, otherwise a problem document whose code tells a full disk from a
 * database that cannot be written and from a process that has too much to do. GET /v1/health only says that it runs.
 */
import type { RequestListener } from 'node:http';
import { problemResponse } from '#functions/runtime/problem.ts';
import { splitUrl } from './gateway-event.ts';
import { sendResult } from './http-gateway.ts';

const isJson = { 'content-type': 'application/json' };

export const withReadiness =
  (otherwise: RequestListener, ready: () => Promise<void>): RequestListener =>
  (request, response) => {
    const asksThis = splitUrl(request.url ?? '').rawPath === '/ready' && ['GET', 'HEAD'].includes(request.method ?? '');
    if (!asksThis) return otherwise(request, response);
    ready().then(
      () => sendResult(response, request, { statusCode: 200, headers: isJson, body: '{"status":"ready"}' }),
      (error: unknown) => sendResult(response, request, problemResponse(error, '')),
    );
  };
