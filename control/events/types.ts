/** Every event type. Public ones appear in the tenant's feed; the others only drive the broker itself. */
export const eventTypes = {
  'tenant.created': { public: true },
  'api-key.created': { public: true },
  'api-key.rotated': { public: true },
  'api-key.revoked': { public: true },
  'cluster.join-token-created': { public: true },
  'cluster.joined': { public: true },
  'cluster.left': { public: true },
  'cluster.facts-changed': { public: true },
  /** An agent reported something new about the peerings in `data.peerings`. */
  'cluster.observed': { public: false },
  'peering.requested': { public: true },
  'peering.changed': { public: true },
  'peering.phase-changed': { public: true },
  'peering.unpeer-requested': { public: true },
} as const satisfies Record<string, { readonly public: boolean }>;

export type EventType = keyof typeof eventTypes;

export const isPublic = (type: string): boolean =>
  Object.hasOwn(eventTypes, type) && eventTypes[type as EventType].public;
