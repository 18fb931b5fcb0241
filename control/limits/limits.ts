/** What a tenant may use of the broker at most, and how it stands. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Limits } from '../model/limits.ts';

const limitNames = ['clusters', 'peerings', 'requestsPerMinute', 'eventsPerMinute'] as const;
type LimitName = (typeof limitNames)[number];

/** For strangers: the default of a deployment that says nothing else. */
export const hostedLimits: Limits = {
  clusters: 1_000,
  peerings: 5_000,
  requestsPerMinute: 3_000,
  eventsPerMinute: 30_000,
};

/** For a broker of one's own: bounds accidents, not customers. */
export const selfHostedLimits: Limits = {
  clusters: 100_000,
  peerings: 100_000,
  requestsPerMinute: 120_000,
  eventsPerMinute: 1_000_000,
};

const maxLimitValue = 10_000_000;

export function checkLimits(limits: Readonly<Partial<Record<string, unknown>>>): void {
  for (const [field, value] of Object.entries(limits)) {
    if (!limitNames.includes(field as LimitName)) {
      throw new AppError('invalid_input', `limits.${field} is no limit; accepted are ${limitNames.join(', ')}`, {
        detail: { field: `limits.${field}`, value },
      });
    }
    if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxLimitValue) continue;
    throw new AppError(
      'invalid_input',
      `limits.${field} is ${JSON.stringify(value)}; accepted is a whole number from 0 to ${maxLimitValue}`,
      { detail: { field: `limits.${field}`, value } },
    );
  }
}

/** How a tenant stands in the window that a request fell into: what the RateLimit headers say. */
export interface Standing {
  readonly limit: number;
  readonly remaining: number;
  /** Until the window ends. */
  readonly resetSeconds: number;
}
