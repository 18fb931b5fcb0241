/** Every event type. Public ones appear in the tenant's feed; the others only drive the broker itself. */
export const eventTypes = {
  'tenant.created': { public: true },
  'tenant.changed': { public: true },
  'tenant.deletion-started': { public: true },
  'member.added': { public: true },
  'member.changed': { public: true },
  'member.removed': { public: true },
  'issuer.registered': { public: true },
  'issuer.removed': { public: true },
  'api-key.created': { public: true },
  'api-key.rotated': { public: true },
  'api-key.revoked': { public: true },
  'cluster.join-token-created': { public: true },
  'cluster.joined': { public: true },
  'cluster.left': { public: true },
  'cluster.labels-changed': { public: true },
  'cluster.facts-changed': { public: true },
  /** An agent reported something new about the peerings in `data.peerings`; `data.kinds` are the kinds of objects that differ. */
  'cluster.observed': { public: false },
  'peering.requested': { public: true },
  'peering.changed': { public: true },
  'peering.phase-changed': { public: true },
  'peering.unpeer-requested': { public: true },
  'invitation.created': { public: true },
  'invitation.redeemed': { public: true },
  'invitation.revoked': { public: true },
  'request.received': { public: true },
  'request.sent': { public: true },
  'request.approved': { public: true },
  'request.rejected': { public: true },
  'request.withdrawn': { public: true },
  'request.expired': { public: true },
  'approval-rule.created': { public: true },
  'approval-rule.deleted': { public: true },
  'directory.published': { public: true },
  'directory.unpublished': { public: true },
  'webhook.created': { public: true },
  'webhook.changed': { public: true },
  'webhook.deleted': { public: true },
  'webhook.secret-rotated': { public: true },
  'webhook.enabled': { public: true },
  'webhook.disabled': { public: true },
  /** Deliveries of the webhook became due by a test or a replay. */
  'webhook.due': { public: false },
} as const satisfies Record<string, { readonly public: boolean }>;

export type EventType = keyof typeof eventTypes;

export const isPublic = (type: string): boolean =>
  Object.hasOwn(eventTypes, type) && eventTypes[type as EventType].public;
