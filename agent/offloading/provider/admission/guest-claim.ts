/** What a guest's claim may not ask for on this provider, and what it may not change. Pure; quota is a file of its own. */
import { allow, deny, type PatchOperation, type Verdict } from '#agent/admission/review.ts';
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import type { GuestRules } from '../guests/decide.ts';
import { classOf } from '../storage/demand.ts';
import { validateAnnotations } from './guest-annotations.ts';
import { refuseField } from './refuse-field.ts';

/** Orders to the provider's scheduler, provisioners and PersistentVolume controller, which no setting accepts. */
const orders = ['volume.kubernetes.io/', 'volume.beta.kubernetes.io/', 'pv.kubernetes.io/'];

/** What consumer and provider say to each other, which no setting refuses. */
const between = 'isthmus.dev/*';

const refuse = (field: string, value: unknown, why: string): Verdict =>
  refuseField(field, value, `${why}; leave it out`);

/** Any claim in a namespace of a consumer carries whose it is, and does not go before its data is safe. */
export function guestClaimPatch({ metadata }: PersistentVolumeClaim, consumer: string): PatchOperation[] {
  const { labels, finalizers, deletionTimestamp } = metadata;
  if (deletionTimestamp !== undefined) return [];
  const isMarked = labels?.[guestVolume.label] === consumer;
  return [
    ...(isMarked
      ? []
      : [{ op: 'add' as const, path: '/metadata/labels', value: { ...labels, [guestVolume.label]: consumer } }]),
    ...(finalizers?.includes(guestVolume.finalizer)
      ? []
      : [{ op: 'add' as const, path: '/metadata/finalizers', value: [...(finalizers ?? []), guestVolume.finalizer] }]),
  ];
}

/** `offered`: names of the StorageClasses that this consumer may use. */
export function validateGuestClaim(
  claim: PersistentVolumeClaim,
  before: PersistentVolumeClaim | undefined,
  offered: readonly string[],
  { annotations }: Pick<GuestRules, 'annotations'>,
): Verdict {
  const { metadata, spec = {} } = claim;
  if (before) {
    const kept = before.metadata.finalizers?.includes(guestVolume.finalizer) ?? false;
    if (kept && !metadata.finalizers?.includes(guestVolume.finalizer))
      return deny('forbidden', `metadata.finalizers lacks ${guestVolume.finalizer}: the provider takes it off itself`);
    const [was, is] = [before, claim].map((one) => one.metadata.labels?.[guestVolume.label]);
    if (was !== undefined && was !== is)
      return deny('forbidden', `metadata.labels[${guestVolume.label}] is immutable (${was}, not ${is ?? 'absent'})`);
    if (metadata.deletionTimestamp !== undefined) return allow;
  }
  if (spec.volumeName && spec.volumeName !== before?.spec?.volumeName)
    return refuse('spec.volumeName', spec.volumeName, 'the provider chooses the volume');
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    const isNews = before?.metadata.annotations?.[key] !== value;
    if (isNews && orders.some((prefix) => key.startsWith(prefix)))
      return refuse(`metadata.annotations[${key}]`, value, 'it is an order to controllers of the provider');
  }
  // Provisioners take orders as well: paths on their disks, volumes to take over, addresses to load data from.
  const annotated = validateAnnotations(metadata, before?.metadata, [between, ...annotations]);
  if (!annotated.allowed) return annotated;
  if (before) {
    const attributes = spec.volumeAttributesClassName;
    return attributes && attributes !== before.spec?.volumeAttributesClassName
      ? refuse('spec.volumeAttributesClassName', attributes, 'no such classes are offered')
      : allow;
  }
  const className = classOf(claim) ?? '';
  if (!offered.includes(className)) {
    return deny(
      'storage_class_not_offered',
      `spec.storageClassName is ${JSON.stringify(className)}: accepted are ${offered.join(', ') || 'none'} (asProvider.storageClasses of the provider's PeeringPolicy)`,
    );
  }
  if (spec.selector) return refuse('spec.selector', spec.selector, 'the provider chooses the volume');
  if (spec.volumeAttributesClassName)
    return refuse('spec.volumeAttributesClassName', spec.volumeAttributesClassName, 'no such classes are offered');
  return allow;
}
