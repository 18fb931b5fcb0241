/** Finalizers of guests' objects: one of theirs would keep their namespace here from ever ending. Pure. */
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';

/** Of the garbage collector and the API server. Not `orphan`: what the provider made of an object goes with it. */
const accepted: readonly string[] = ['foregroundDeletion', 'kubernetes.io/pvc-protection'];

/** Those that are there already may be the provider's. */
export function validateFinalizers(
  { metadata }: Pick<KubeObject, 'metadata'>,
  before: Pick<KubeObject, 'metadata'> | undefined,
  /** That our own hooks add to objects of this kind. */
  ours: readonly string[] = [],
): Verdict {
  const known = [...(before?.metadata.finalizers ?? []), ...accepted, ...ours];
  const { finalizers } = metadata;
  const added = Array.isArray(finalizers) ? finalizers.find((finalizer) => !known.includes(finalizer)) : undefined;
  return added === undefined
    ? allow
    : deny(
        'sandbox_refused',
        `metadata.finalizers has ${added}, by which the namespace could never be removed; leave it out, accepted are ${accepted.join(', ')}`,
      );
}

/** What the provider cleans up by. */
export function validateKeptFinalizers(
  { metadata }: Pick<KubeObject, 'metadata'>,
  before: Pick<KubeObject, 'metadata'>,
): Verdict {
  const removed = before.metadata.finalizers?.find((finalizer) => !metadata.finalizers?.includes(finalizer));
  return removed === undefined
    ? allow
    : deny('forbidden', `metadata.finalizers lacks ${removed}: the provider takes it off itself`);
}
