/** What may be asked for at all, before anything is read, and how it is held against what somebody agreed to. */
import { excessOver, parseResources } from '#shared/domain/quantity.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ClusterId } from '#shared/schema/protocol/agent-protocol.ts';
import type { Resources } from '../model/peering.ts';
import type { Grant } from './across.ts';
import type { Terms } from './consent.ts';
import { type AskedNetwork, checkNetwork } from './network-terms.ts';

export interface AskedTerms {
  readonly consumer: string;
  readonly provider: string;
  /** Absent members are not limited by the request. */
  readonly resources: Resources;
  /** Default `default`. */
  readonly class?: string;
  readonly network?: AskedNetwork | undefined;
}

const className = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

export function checkClass(name: string, field = 'class'): string {
  if (className.test(name)) return name;
  throw new AppError(
    'invalid_input',
    `${field} is ${JSON.stringify(name)}; accepted are 1 to 63 letters, digits, -, _ and .`,
    { detail: { field, value: name } },
  );
}

export function checkCluster(value: string, field: string): void {
  if (ClusterId.safeParse(value).success) return;
  throw new AppError(
    'invalid_input',
    `${field} is ${JSON.stringify(value)}; a cluster ID is a DNS-1123 label of at most 63 characters`,
    { detail: { field, value } },
  );
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
export const upTo = (limits: Resources, asked: Resources): Resources => ({ ...limits, ...asked });

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
