/** Errors as RFC 9457 problem documents with a stable `code`. What is not ours is reported as `internal`, logged, and not shown. */
import type { MiddlewareObj } from '@middy/core';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import type * as z from 'zod';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { codes, type ErrorCode } from '#shared/errors/codes.ts';
import type { Problem } from '#shared/schema/api/resources.ts';
import { compositionOf } from './composition.ts';
import { rateFields, rateHeaders } from './rate-headers.ts';
import { tookTooLong } from './request-deadline.ts';

interface FieldError {
  readonly field: string;
  readonly message: string;
  readonly value?: unknown;
}

const valueAt = (input: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined,
    input,
  );

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
};

/** `where` is body, query or path. Names field, value and what is accepted. */
export function inputError(where: string, error: z.ZodError, input: unknown): AppError {
  const errors: FieldError[] = error.issues.map((issue) => {
    const field = issue.path.length === 0 ? where : issue.path.map(String).join('.');
    const value = valueAt(input, issue.path);
    const secret = /secret|token|password|confirmation|^code$|nonce/i.test(field);
    return {
      field,
      message: `${field}: ${lowerFirst(issue.message)}, got ${secret ? 'a value not shown' : shown(value)}`,
      ...(!secret && value !== undefined && { value }),
    };
  });
  return new AppError('invalid_input', errors.map((e) => e.message).join('; '), { detail: { errors } });
}

const lowerFirst = (text: string): string => text.slice(0, 1).toLowerCase() + text.slice(1);

const fromMiddy: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  408: ['deadline_exceeded', tookTooLong],
};

/** Maps what middlewares of the stack throw to our codes; anything else is a defect. */
export function appErrorOf(error: unknown): {
  code: ErrorCode;
  message: string;
  detail: Readonly<Record<string, unknown>>;
} {
  const code = codeOf(error);
  if (code !== undefined) {
    const detail = (error as Partial<AppError>).detail;
    return { code, message: (error as Error).message, detail: detail ?? {} };
  }
  const status = (error as { statusCode?: unknown } | null)?.statusCode;
  const known = typeof status === 'number' ? fromMiddy[status] : undefined;
  if (known !== undefined) return { code: known[0], message: known[1], detail: {} };
  return { code: 'internal', message: 'the broker failed while handling this request', detail: {} };
}

function problemOf(error: unknown, requestId: string): Problem {
  const { code, message, detail } = appErrorOf(error);
  const facts = codes[code];
  const { errors, field, value } = detail as { errors?: FieldError[]; field?: unknown; value?: unknown };
  const fields =
    errors ?? (typeof field === 'string' ? [{ field, message, ...(value !== undefined && { value }) }] : undefined);
  return {
    type: `urn:isthmus:error:${code}`,
    title: facts.cause,
    status: facts.http,
    detail: message,
    code,
    requestId,
    retryable: facts.retry,
    remedy: facts.remedy,
    ...(fields && { errors: fields }),
  };
}

export function problemResponse(
  error: unknown,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): APIGatewayProxyStructuredResultV2 {
  const problem = problemOf(error, requestId);
  return {
    statusCode: problem.status,
    headers: {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-request-id': requestId,
      ...headers,
      ...(problem.status === 401 && { 'www-authenticate': 'Bearer' }),
      ...(problem.status === 405 && { allow: String(appErrorOf(error).detail.allow) }),
      ...retryHeaders(problem, appErrorOf(error).detail),
    },
    body: JSON.stringify(problem),
  };
}

function retryHeaders(
  { status }: Problem,
  { retryAfterSeconds, limit, remaining, resetSeconds }: Readonly<Record<string, unknown>>,
): Record<string, string> {
  if (status !== 429 && status !== 503 && status !== 507) return {};
  return {
    'retry-after': String(retryAfterSeconds ?? 1),
    ...(resetSeconds !== undefined && rateFields({ limit, remaining, resetSeconds })),
  };
}

/** First in the stack, so that it sees what every other middleware threw. */
export const problemDetails = (): MiddlewareObj<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2> => ({
  onError(request) {
    const { requestId } = request.event.requestContext;
    if (appErrorOf(request.error).code === 'internal') {
      const { method, path } = request.event.requestContext.http;
      compositionOf(request.context).log.error('request failed', request.error, { requestId, method, path });
    }
    request.response = problemResponse(request.error, requestId, rateHeaders(request.event));
  },
});
