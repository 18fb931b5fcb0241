/** What the copy of one object needs. Pure. */
import { sameJson } from '#shared/domain/json-equality.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { buildReplica, correctReplica, type Replicated } from './replica.ts';

export type CopyStep<T> =
  | { readonly do: 'create'; readonly replica: T }
  | { readonly do: 'correct'; readonly replica: T }
  | { readonly do: 'nothing' }
  | { readonly do: 'wait'; readonly on: string }
  | { readonly do: 'refuse'; readonly message: string };

export const isCopyOf = (replica: Replicated, consumer: string): boolean =>
  replica.metadata.labels?.[label.replicated] === 'true' && replica.metadata.labels[label.originId] === consumer;

export function decideCopy<T extends Replicated>(
  original: T,
  replica: T | undefined,
  consumer: string,
  namespace: string,
): CopyStep<T> {
  if (replica === undefined) return { do: 'create', replica: buildReplica(original, consumer, namespace) };
  const { name } = original.metadata;
  if (!isCopyOf(replica, consumer)) {
    return {
      do: 'refuse',
      message: `${original.kind} ${name} exists at the provider and is no copy of ours; choose another name`,
    };
  }
  if (replica.metadata.deletionTimestamp !== undefined)
    return { do: 'wait', on: `the provider to finish removing its previous copy of ${name}` };
  const corrected = correctReplica(replica, original, consumer);
  const isRight =
    sameJson(replica.spec, corrected.spec) &&
    sameJson(replica.metadata.labels ?? {}, corrected.metadata.labels ?? {}) &&
    sameJson(replica.metadata.annotations ?? {}, corrected.metadata.annotations ?? {});
  return isRight ? { do: 'nothing' } : { do: 'correct', replica: corrected };
}
