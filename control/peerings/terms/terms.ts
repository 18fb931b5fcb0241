/** Static limits of what may be requested, checked before anything is read; and the comparison with what a side agreed to. */
import { excessOver, parseResources } from '#shared/domain/quantity.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { checkClass, checkCluster } from '../../input/checks.ts';
import type { Grant } from '../../model/cross-tenant.ts';
import type { AskedNetwork } from '../../model/network-terms.ts';
import type { Resources } from '../../model/peering.ts';
import type { Terms } from './consent.ts';
import { checkNetwork } from './network-terms.ts';

export interface AskedTerms {
  readonly consumer: string;
  readonly provider: string;
  /** Absent members are not limited by the request. */
  readonly resources: Resources;
  /** Default `default`. */
  readonly class?: string;
  readonly network?: AskedNetwork | undefined;
}

/** The network is settled once both clusters are known. */
export type CheckedTerms = Omit<Terms, 'network'>;

/** Refuses terms that could never hold. */
export function checkTerms(input: AskedTerms): CheckedTerms {
  const { consumer, provider } = input;
  checkCluster(consumer, 'consumer');
  checkCluster(provider, 'provider');
  checkNetwork(input.network ?? {});
  return {
    consumer,
    provider,
    class: checkClass(input.class === undefined || input.class === '' ? 'default' : input.class),
    resources: parseResources(input.resources),
  };
}

export function refuseSelf({ consumer, provider }: CheckedTerms): void {
  if (consumer !== provider) return;
  throw new AppError('peer_self', `consumer and provider are both ${consumer}; a cluster cannot peer with itself`, {
    detail: { field: 'provider', value: provider },
  });
}

/** What is not asked for is asked for up to the limit; what no limit names stays as asked. */
export const upTo = (limits: Resources, requested: Resources): Resources => ({ ...limits, ...requested });

/** Refuses, naming the field, what is more than the other tenant agreed to. */
export function mustBeWithin({ limits, classes }: Pick<Grant, 'limits' | 'classes'>, terms: Terms): void {
  const [excess] = excessOver(terms.resources, limits);
  const refuse = (field: string, value: string, limit: string): never => {
    throw new AppError('consent_exceeded', `${field} is ${value}; tenant and provider agreed to ${limit}`, {
      detail: { field, value, accepted: limit },
    });
  };
  if (excess) refuse(`resources.${excess.resource}`, excess.asked, `at most ${excess.limit}`);
  if (!classes.includes('*') && !classes.includes(terms.class)) refuse('class', terms.class, classes.join(', '));
}
