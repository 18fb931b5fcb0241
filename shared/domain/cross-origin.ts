/** What pages of other origins may ask of the REST API and read of its answers (CORS). Cookies are never taken from there. */

/** Every method that an operation has. */
export const crossOriginMethods = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** Request headers that an operation heeds and a page may not set by itself. */
export const crossOriginRequestHeaders = [
  'authorization',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'isthmus-tenant',
] as const;

/** Headers of answers that a page could not read otherwise. */
export const crossOriginAnswerHeaders = [
  'deprecation',
  'etag',
  'idempotency-replayed',
  'link',
  'location',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'retry-after',
  'sunset',
  'x-request-id',
] as const;

/** How long a browser remembers a preflight's answer. */
export const crossOriginSeconds = 600;

/** `https://portal.example.com`, or plain HTTP on this machine: exactly what browsers send, so no slash at the end, no path and no `*`. */
export function isOrigin(text: string): boolean {
  if (!/^https?:\/\/[-.a-z0-9[\]:]+$/.test(text) || !URL.canParse(text)) return false;
  const { origin, protocol, hostname } = new URL(text);
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
  return origin === text && (protocol === 'https:' || (protocol === 'http:' && local));
}

/** An origin that a content-security-policy can name: it knows no IPv6 addresses. */
export const isPolicySource = (text: string): boolean => isOrigin(text) && !text.includes('[');
