/** A signal that aborts shortly before the platform would end the invocation. */
import type { Context } from 'aws-lambda';
import { sendTimeoutMs } from '#control/webhooks/schedule.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { answerReserveMs } from './request-deadline.ts';

/** Room for finishing a delivery that was begun: its time limit, and writing down what came of it. */
export const attemptReserveMs = sendTimeoutMs + 3_000;

export function deadlineSignal(context: Context, reserveMs = answerReserveMs): AbortSignal {
  const timeout = AbortSignal.timeout(Math.max(1, Math.floor(context.getRemainingTimeInMillis() - reserveMs)));
  const out = new AbortController();
  timeout.addEventListener(
    'abort',
    () => out.abort(new AppError('deadline_exceeded', 'the function ran out of time; it will be called again')),
    { once: true },
  );
  return out.signal;
}
