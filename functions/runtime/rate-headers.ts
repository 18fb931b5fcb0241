/** The RateLimit header fields (draft-ietf-httpapi-ratelimit-headers, the version with three fields that clients understand). */
import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import type { Standing } from '#control/limits/limits.ts';

const standings = new WeakMap<APIGatewayProxyEventV2, Standing>();

export const noteStanding = (event: APIGatewayProxyEventV2, standing: Standing): void =>
  void standings.set(event, standing);

export const rateFields = ({
  limit,
  remaining,
  resetSeconds,
}: Readonly<Record<keyof Standing, unknown>>): Record<string, string> => ({
  'ratelimit-limit': String(limit),
  'ratelimit-remaining': String(remaining),
  'ratelimit-reset': String(resetSeconds),
});

/** None for requests that count against no limit. */
export function rateHeaders(event: APIGatewayProxyEventV2): Record<string, string> {
  const standing = standings.get(event);
  return standing ? rateFields(standing) : {};
}
