/** Headers of every file of the console: what functions/local/console-files.ts sends, a test compares both. */

/** `issuers`: origins of identity providers that the page may ask when it logs in by them. */
export const consolePolicy = (issuers: readonly string[]): string =>
  `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src ${["'self'", ...issuers].join(' ')}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** Those that CloudFront has no word of its own for. */
export const consoleHeaders: Readonly<Record<string, string>> = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

export const strictTransportSeconds = 31_536_000;
