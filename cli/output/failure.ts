/** An error as the user sees it: what happened, what to do about it, and the exit code for scripts. */

import { codeOf } from '#shared/errors/app-error.ts';
import { codes } from '#shared/errors/codes.ts';
import { messageOf } from '#shared/errors/message-of.ts';

/** Ends the command with this exit code after it has printed everything itself. */
export class EndWith extends Error {
  constructor(readonly exit: number) {
    super(`exit code ${exit}`);
  }
}

export interface Failure {
  readonly exit: number;
  readonly text: string;
}

const detailOf = (error: unknown): Readonly<Record<string, unknown>> =>
  typeof error === 'object' && error !== null && 'detail' in error && typeof error.detail === 'object'
    ? ((error.detail ?? {}) as Record<string, unknown>)
    : {};

interface FieldError {
  readonly field: string;
  readonly message: string;
}

const fieldErrors = (detail: Readonly<Record<string, unknown>>): readonly FieldError[] =>
  Array.isArray(detail.errors)
    ? detail.errors.filter(
        (e): e is FieldError => typeof e === 'object' && e !== null && 'field' in e && 'message' in e,
      )
    : [];

export function explain(error: unknown): Failure {
  if (error instanceof EndWith) return { exit: error.exit, text: '' };
  const code = codeOf(error);
  const message = messageOf(error);
  if (code === undefined) {
    const stack = error instanceof Error && error.stack ? `\n${error.stack}` : '';
    return { exit: codes.internal.exit, text: `error: ${message}\nto do: ${codes.internal.remedy}${stack}\n` };
  }
  const detail = detailOf(error);
  const lines = [`error: ${message} (${code})`];
  for (const { field, message: why } of fieldErrors(detail)) {
    if (!message.includes(why)) lines.push(`  ${field}: ${why}`);
  }
  lines.push(`to do: ${typeof detail.remedy === 'string' ? detail.remedy : codes[code].remedy}`);
  if (typeof detail.requestId === 'string') lines.push(`request: ${detail.requestId}`);
  return { exit: codes[code].exit, text: `${lines.join('\n')}\n` };
}
