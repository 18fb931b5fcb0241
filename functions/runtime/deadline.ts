/** A signal that aborts shortly before the platform would end the invocation. */
import type { Context } from 'aws-lambda';
import { AppError } from '#shared/errors/app-error.ts';

/** Room for saying what happened. */
const reserveMs = 500;

export function deadlineSignal(context: Context): AbortSignal {
  const timeout = AbortSignal.timeout(Math.max(1, Math.floor(context.getRemainingTimeInMillis() - reserveMs)));
  const out = new AbortController();
  timeout.addEventListener(
    'abort',
    () => out.abort(new AppError('deadline_exceeded', 'the function ran out of time; it will be called again')),
    { once: true },
  );
  return out.signal;
}
