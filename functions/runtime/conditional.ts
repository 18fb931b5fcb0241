/** ETags are versions in quotes. */
import { AppError } from '#shared/errors/app-error.ts';

/**
 * Undefined when the header is absent or `*`. If-Match compares strongly (RFC 9110, 13.1.1): a weak ETag matches nothing, hence
 * `precondition_failed`. If-None-Match compares weakly.
 */
export function versionIn(
  headers: Readonly<Record<string, string | undefined>>,
  name: 'if-match' | 'if-none-match',
): number | undefined {
  const value = headers[name]?.trim();
  if (value === undefined || value === '*') return undefined;
  const version = /^(?:W\/)?"(\d{1,15})"$/.exec(value)?.[1];
  if (version === undefined) {
    throw new AppError(
      'malformed_request',
      `the header ${name} is ${JSON.stringify(value)}, accepted is one ETag as this API gives it, for example "3"`,
      { detail: { field: name, value } },
    );
  }
  if (name === 'if-match' && value.startsWith('W/')) {
    throw new AppError(
      'precondition_failed',
      `the header if-match is ${JSON.stringify(value)}, a weak ETag, which matches nothing; send it as this API gives it, for example "3"`,
      { detail: { field: name, value } },
    );
  }
  return Number(version);
}
