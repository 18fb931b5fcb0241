/** What a failed request to a provider means for the pass that made it: a provider's failure must never stop this cluster's own work. */
import { type Outcome, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';

/** A request to the provider failed, as opposed to one to our own API server. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly failure: unknown;

  constructor(failure: unknown) {
    super(messageOf(failure), { cause: failure });
    this.failure = failure;
  }
}

export async function atProvider<T>(request: Promise<T>): Promise<T> {
  try {
    return await request;
  } catch (error) {
    throw new ProviderError(error);
  }
}

/** Undefined: the failure is ours (a conflict, a defect), and the queue's back-off deals with it. */
export function outcomeOfFailure(thrown: unknown, peer: string): Outcome | undefined {
  if (!(thrown instanceof ProviderError)) return undefined;
  const error = thrown.failure;
  switch (codeOf(error)) {
    case 'kube_unreachable':
    case 'kube_throttled':
      return waiting(`provider ${peer} to answer: ${messageOf(error)}`, 5_000);
    case 'kube_unauthorized':
      return waiting(`provider ${peer} to accept our certificate: ${messageOf(error)}`, 15_000);
    case 'kube_forbidden':
      return waiting(
        `provider ${peer} to give us rights in our tenant namespace (not yet, or taken back): ${messageOf(error)}`,
        10_000,
      );
    case 'kube_not_found':
      return waiting(
        `provider ${peer} to have our tenant namespace and the kinds of Liqo: ${messageOf(error)}`,
        10_000,
      );
    default:
      // The queue treats conflicts and defects alike, wherever they came from.
      throw error;
  }
}
