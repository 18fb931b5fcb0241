/** What a claim's volume begins as: empty, a copy of another claim's volume, or a snapshot. */
import type { PersistentVolumeClaim, StorageClass } from '#shared/domain/core-kinds.ts';
import { dataSourceOf } from '../model/data-source.ts';
import { snapshotOriginOf } from './snapshot-source.ts';
import { readSnapshotSource } from './snapshot-source-facts.ts';
import { type Origin, originOf } from './source.ts';
import { readSource } from './source-facts.ts';
import type { Target } from './target.ts';

type Clusters = Parameters<typeof readSource>[2];

/** Undefined while it is not known where the volume is to be. */
export async function readOrigin(
  claim: PersistentVolumeClaim,
  target: Target,
  { classes, ...clusters }: Clusters & { readonly classes: readonly StorageClass[] },
  signal: AbortSignal,
): Promise<Origin | undefined> {
  if (target.kind !== 'local' && target.kind !== 'remote') return undefined;
  return dataSourceOf(claim).kind === 'snapshot'
    ? snapshotOriginOf(claim, target, await readSnapshotSource(claim, target, clusters, signal), classes)
    : originOf(claim, target, await readSource(claim, target, clusters, signal), classes);
}
