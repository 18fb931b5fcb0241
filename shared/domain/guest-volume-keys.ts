/** What the provider itself writes on claims of guests and on volumes whose data it keeps. Guests cannot change it. */

export const guestVolume = {
  /** Label on every claim in a namespace of a consumer: the consumer's cluster ID. */
  label: 'isthmus.dev/guest',
  /** Finalizer on the same claims: they go once their data is kept, or may go with them. */
  finalizer: 'isthmus.dev/guest-claim',
  /** Label on a PersistentVolume whose data is kept: the cluster ID of the consumer whose data it is. */
  keptFor: 'isthmus.dev/kept-for',
} as const;

/** Annotations on the same PersistentVolumes: all that its RetainedVolume says can be read there again. */
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
