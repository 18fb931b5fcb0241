/** Of which claims a guest may take snapshots, and what it may not change on them. Pure; quota is a file of its own. */
import { isDeepStrictEqual } from 'node:util';
import { allow, deny, type PatchOperation, type Verdict } from '#agent/admission/review.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { guestSnapshot, guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { snapshotControllerPrefix, type VolumeSnapshot } from '#shared/domain/snapshot-kinds.ts';
import type { GuestRules } from '../guests/decide.ts';
import { showCounts } from '../storage/demand.ts';
import { type GuestSource, whyNotLiving } from './claim-source.ts';
import { validateAnnotations } from './guest-annotations.ts';
import { refuseField } from './refuse-field.ts';

const between = 'isthmus.dev/*';

/** What a snapshot of this volume takes of the storage of its consumer: storage may need as much as the volume has. */
const countsAs = ({ spec }: PersistentVolume, claim: PersistentVolumeClaim | undefined): string =>
  showCounts({
    size: spec?.capacity?.storage,
    storageClassName: claim?.spec?.storageClassName ?? spec?.storageClassName,
  });

/** Any VolumeSnapshot that a guest makes says whose it is and what it counts as, and does not go before its data is kept. */
export function guestSnapshotPatch(
  { metadata }: VolumeSnapshot,
  consumer: string,
  { claim, volume }: GuestSource,
): PatchOperation[] {
  const { labels, annotations, finalizers } = metadata;
  const counts = volume && countsAs(volume, claim);
  const { [guestSnapshot.counts]: _, ...others } = annotations ?? {};
  return [
    { op: 'add', path: '/metadata/labels', value: { ...labels, [guestVolume.label]: consumer } },
    {
      op: 'add',
      path: '/metadata/annotations',
      value: { ...others, ...(counts !== undefined && { [guestSnapshot.counts]: counts }) },
    },
    ...(finalizers?.includes(guestSnapshot.finalizer)
      ? []
      : [
          { op: 'add' as const, path: '/metadata/finalizers', value: [...(finalizers ?? []), guestSnapshot.finalizer] },
        ]),
  ];
}

/** Of what was there before. `source`: what the snapshot is to be taken of, as the API server has it now; undefined where there is a `before`. */
export function validateGuestSnapshot(
  snapshot: VolumeSnapshot,
  before: VolumeSnapshot | undefined,
  source: GuestSource | undefined,
  consumer: string,
  { annotations }: Pick<GuestRules, 'annotations'>,
): Verdict {
  const changed = before && validateChange(snapshot, before);
  if (changed && (!changed.allowed || snapshot.metadata.deletionTimestamp !== undefined)) return changed;
  for (const [key, value] of Object.entries(snapshot.metadata.annotations ?? {})) {
    const isNews = before?.metadata.annotations?.[key] !== value;
    if (isNews && key.startsWith(snapshotControllerPrefix))
      return refuseField(
        `metadata.annotations[${key}]`,
        value,
        'it is an order to controllers of the provider; leave it out',
      );
  }
  const annotated = validateAnnotations(snapshot.metadata, before?.metadata, [between, ...annotations]);
  if (!annotated.allowed || before) return annotated;
  const { source: asked, volumeSnapshotClassName } = snapshot.spec ?? {};
  if (volumeSnapshotClassName)
    return refuseField(
      'spec.volumeSnapshotClassName',
      volumeSnapshotClassName,
      'no such classes are offered; leave it out, the provider has a default one',
    );
  if (asked?.volumeSnapshotContentName !== undefined)
    return refuseField(
      'spec.source.volumeSnapshotContentName',
      asked.volumeSnapshotContentName,
      'accepted is persistentVolumeClaimName, of a claim of the same namespace',
    );
  const field = 'spec.source.persistentVolumeClaimName';
  const name = asked?.persistentVolumeClaimName;
  const { claim, volume } = source ?? {};
  const dead = whyNotLiving(claim, volume, consumer);
  if (dead !== undefined)
    return refuseField(field, name, dead === 'absent' ? `${consumer} has no such claim in this namespace` : dead);
  if (volume?.spec?.csi === undefined)
    return refuseField(field, name, 'no CSI driver has made its volume, so no snapshot can be taken of it');
  return allow;
}

function validateChange({ metadata, spec }: VolumeSnapshot, before: VolumeSnapshot): Verdict {
  const lost = before.metadata.finalizers?.find((finalizer) => !metadata.finalizers?.includes(finalizer));
  if (lost !== undefined)
    return deny('forbidden', `metadata.finalizers lacks ${lost}: the provider takes it off itself`);
  const fixed = [
    [
      `metadata.labels[${guestVolume.label}]`,
      before.metadata.labels?.[guestVolume.label],
      metadata.labels?.[guestVolume.label],
    ],
    [
      `metadata.annotations[${guestSnapshot.counts}]`,
      before.metadata.annotations?.[guestSnapshot.counts],
      metadata.annotations?.[guestSnapshot.counts],
    ],
  ] as const;
  if (!isDeepStrictEqual(before.spec, spec))
    return deny('forbidden', 'spec is immutable: it says of what the snapshot was taken');
  for (const [field, was, is] of fixed)
    if (was !== is) return deny('forbidden', `${field} is immutable (${was ?? 'absent'}, not ${is ?? 'absent'})`);
  return allow;
}
