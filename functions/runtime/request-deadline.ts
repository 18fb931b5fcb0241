/** The deadline of one request: shortly before the platform would end the invocation. */
import type { Context } from 'aws-lambda';
import { AppError } from '#shared/errors/app-error.ts';

/** Room for saying what happened, in milliseconds. */
export const answerReserveMs = 500;

export const tookTooLong = 'the request took longer than the broker allows';

/**
 * Works with a signal of its own. The one that middy gives to a handler belongs to all requests of the process: at a local broker, a request that ran out of
 * time would abort those of every tenant.
 */
export async function withinDeadline<T>(context: Context, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController();
  const timer = setTimeout(
    () => deadline.abort(new AppError('deadline_exceeded', tookTooLong)),
    Math.max(0, context.getRemainingTimeInMillis() - answerReserveMs),
  );
  try {
    return await work(deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}
