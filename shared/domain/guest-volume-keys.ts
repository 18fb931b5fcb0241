/** What the provider itself writes on claims of guests and on volumes whose data it keeps. Guests cannot change it. */

export const guestVolume = {
  /** Label on every claim in a namespace of a consumer: the consumer's cluster ID. */
  label: 'isthmus.dev/guest',
  /** Finalizer on the same claims: they go once their data is kept, or may go with them. */
  finalizer: 'isthmus.dev/guest-claim',
  /** Label on a PersistentVolume whose data is kept: the cluster ID of the consumer whose data it is. */
  keptFor: 'isthmus.dev/kept-for',
} as const;

/** The same of VolumeSnapshots: `guestVolume.label` is on them, and on their contents from the moment in which these keep their data. */
export const guestSnapshot = {
  /** Finalizer on VolumeSnapshots of guests: they go once their data is kept, or went by order. */
  finalizer: 'isthmus.dev/guest-snapshot',
  /** Annotation on a VolumeSnapshot of a guest and on its content, JSON: what it takes of the consumer's storage, `{size, storageClassName}`. */
  counts: 'isthmus.dev/counts-as',
} as const;

/** Annotations on PersistentVolumes and VolumeSnapshotContents that keep data. Of a volume, all that its RetainedVolume says can be read there again. */
export const keptAnnotation = {
  /** Reclaim policy before it was kept. */
  policy: 'isthmus.dev/kept-policy',
  /** RFC 3339. */
  since: 'isthmus.dev/kept-since',
  expires: 'isthmus.dev/kept-until',
  /** JSON: the claim here that the volume was bound to, `{namespace, name, uid}`. */
  remoteClaim: 'isthmus.dev/kept-claim',
  /** JSON: the claim of the consumer, as far as the claim here named it. */
  claim: 'isthmus.dev/kept-home-claim',
} as const;
