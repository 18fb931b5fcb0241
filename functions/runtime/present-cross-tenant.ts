/** From the control plane's views of what concerns other tenants to the resources of the REST API. */
import type { InvitationView } from '#control/invitations/invitation.ts';
import type { DirectoryEntry as EntryView } from '#control/model/directory-entry.ts';
import type { ApprovalRule as RuleView } from '#control/requests/approval-rule.ts';
import type { RequestView } from '#control/requests/request.ts';
import type { ApprovalRule, DirectoryEntry, Invitation, PeeringRequest } from '#shared/schema/api/cross-tenant.ts';

const time = (ms: number): string => new Date(ms).toISOString();

export const invitationResource = (view: InvitationView): Invitation => ({
  id: view.id,
  cluster: view.cluster,
  limits: { ...view.limits },
  classes: [...view.classes],
  uses: view.uses,
  usesLeft: view.usesLeft,
  note: view.note,
  state: view.state,
  createdAt: time(view.createdAt),
  createdBy: view.createdBy,
  expiresAt: time(view.expiresAt),
  ...(view.revokedAt !== undefined && { revokedAt: time(view.revokedAt) }),
  redemptions: view.redemptions.map((redemption) => ({ ...redemption, at: time(redemption.at) })),
  version: view.version,
});

export const requestResource = (view: RequestView): PeeringRequest => ({
  id: view.id,
  direction: view.direction,
  consumerTenant: view.consumerTenant,
  consumer: view.consumer,
  providerTenant: view.providerTenant,
  provider: view.provider,
  resources: { ...view.resources },
  class: view.class,
  reason: view.reason,
  state: view.state,
  createdAt: time(view.createdAt),
  expiresAt: time(view.expiresAt),
  ...(view.decidedAt !== undefined && { decidedAt: time(view.decidedAt) }),
  ...(view.answer !== undefined && { answer: view.answer }),
  ...(view.peering !== undefined && { peering: view.peering }),
  ...(view.decidedBy !== undefined && { decidedBy: view.decidedBy }),
  version: view.version,
});

export const ruleResource = (view: RuleView): ApprovalRule => ({
  id: view.id,
  name: view.name,
  tenants: [...view.tenants],
  labels: { ...view.labels },
  maxResources: { ...view.maxResources },
  classes: [...view.classes],
  uses: view.uses,
  used: view.used,
  createdAt: time(view.createdAt),
  createdBy: view.createdBy,
});

export const entryResource = (view: EntryView): DirectoryEntry => ({
  tenant: view.tenant,
  cluster: view.cluster,
  region: view.region,
  labels: { ...view.labels },
  classes: [...view.classes],
  capacity: { ...view.capacity },
  description: view.description,
  publishedAt: time(view.publishedAt),
  updatedAt: time(view.updatedAt),
});
