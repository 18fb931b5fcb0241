/** What answers of an operation that goes away say about it: the fields Deprecation (RFC 9745) and Sunset (RFC 8594), and where to read more. */
import type { Deprecation } from './route.ts';

export const deprecationHeaders = ({ since, until }: Deprecation): Record<string, string> => ({
  deprecation: `@${Math.floor(Date.parse(since) / 1_000)}`,
  sunset: new Date(until).toUTCString(),
  link: '</v1/openapi.json>; rel="deprecation"; type="application/json"',
});
