/** What the REST API answers with about other tenants (docs/cross-tenant.md): invitations, requests, approval rules, the directory. */
import * as z from 'zod';
import { GivenLabels, GivenQuantities, LabelValue, OneClass } from '../definition/kubernetes-text.ts';
import { printable } from '../definition/printable-text.ts';
import { ClusterId, Quantities } from '../protocol/agent-protocol.ts';

const Time = z.iso.datetime().describe('RFC 3339, UTC.');
const Tenant = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'must be the name of a tenant: a DNS-1123 label of at most 63 characters');
const TenantOrAll = z
  .string()
  .max(63)
  .regex(/^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$/, 'must be the name of a tenant, or * for all');
const Class = z
  .string()
  .regex(/^(\*|[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$/, 'must be 1 to 63 letters, digits, -, _ and ., or *');
const Classes = z.array(Class).min(1).max(20).describe('Resource classes; `*` for all.');
const Labels = z.record(z.string(), z.string());
const Note = printable(z.string().max(500));
const page = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    cursor: z.string().optional().describe('Present when there may be more: ask again with it.'),
  });

export const Redemption = z.object({
  peering: z.string(),
  tenant: z.string().describe('The tenant that used it.'),
  cluster: ClusterId.describe('The consumer.'),
  at: Time,
});

export const Invitation = z.object({
  id: z.string(),
  cluster: ClusterId.describe('The provider.'),
  limits: Quantities.describe('Most that one peering gets; what is not named, the PeeringPolicy alone limits.'),
  classes: z.array(z.string()),
  uses: z.int().describe('How many peerings it makes.'),
  usesLeft: z.int(),
  note: z.string().describe('For the inviting tenant only.'),
  state: z.enum(['open', 'used', 'expired', 'revoked']),
  createdAt: Time,
  createdBy: z.string(),
  expiresAt: Time,
  revokedAt: Time.optional(),
  redemptions: z.array(Redemption),
  version: z.int(),
});
export type Invitation = z.infer<typeof Invitation>;
export const InvitationPage = page(Invitation);

export const IssuedInvitation = z.object({
  invitation: Invitation,
  code: z.string().describe('A bearer secret, shown once and stored as a hash: possession is enough to use it.'),
});
export type IssuedInvitation = z.infer<typeof IssuedInvitation>;

export const NewInvitation = z.object({
  cluster: ClusterId,
  limits: GivenQuantities.default({}),
  classes: Classes.default(['default']),
  expiresInSeconds: z
    .int()
    .min(60)
    .max(366 * 86_400)
    .default(7 * 86_400),
  uses: z.int().min(1).max(100).default(1),
  note: Note.default(''),
});

export const NewRedemption = z.object({
  // No bounds: an error about a bound would repeat what is a secret.
  code: z.string().describe('As it was printed, isi_….'),
  consumer: ClusterId.describe('A cluster of yours.'),
  resources: GivenQuantities.default({}).describe("What is not named is asked for up to the invitation's limit."),
  class: OneClass.optional().describe('Default: the first class of the invitation.'),
});

export const RequestState = z.enum(['pending', 'approved', 'rejected', 'expired', 'withdrawn']);
export const RequestDirection = z.enum(['received', 'sent']);

export const PeeringRequest = z.object({
  id: z.string(),
  direction: RequestDirection.describe('Whether you are asked or ask.'),
  consumerTenant: z.string(),
  consumer: ClusterId,
  providerTenant: z.string(),
  provider: ClusterId,
  resources: Quantities,
  class: z.string(),
  reason: z.string().describe('Why it was asked for.'),
  state: RequestState,
  createdAt: Time,
  expiresAt: Time,
  decidedAt: Time.optional(),
  answer: z.string().optional().describe("What the provider's tenant said to it."),
  peering: z.string().optional().describe('The peering that it became.'),
  decidedBy: z.string().optional().describe("For the provider's tenant only: the principal or the rule that decided."),
  version: z.int(),
});
export type PeeringRequest = z.infer<typeof PeeringRequest>;
export const PeeringRequestPage = page(PeeringRequest);

export const NewPeeringRequest = z.object({
  consumer: ClusterId.describe('A cluster of yours.'),
  providerTenant: Tenant,
  provider: ClusterId.describe('A cluster in the directory.'),
  resources: GivenQuantities.default({}),
  class: OneClass.optional(),
  reason: Note.default(''),
  expiresInSeconds: z
    .int()
    .min(60)
    .max(90 * 86_400)
    .default(7 * 86_400),
});

export const Decision = z.object({ reason: Note.default('').describe('Told to the asking tenant.') });

export const ApprovalRule = z.object({
  id: z.string(),
  name: z.string(),
  tenants: z.array(z.string()),
  labels: Labels.describe('Labels that the published cluster has.'),
  maxResources: Quantities.describe('A request must name each of these and ask for no more.'),
  classes: z.array(z.string()),
  uses: z.int().describe('How many requests it approves.'),
  used: z.int().describe('How many it has approved.'),
  createdAt: Time,
  createdBy: z.string(),
});
export type ApprovalRule = z.infer<typeof ApprovalRule>;
export const ApprovalRulePage = page(ApprovalRule);

export const NewApprovalRule = z.object({
  name: z.string().min(1).max(100),
  tenants: z.array(TenantOrAll).min(1).max(50),
  labels: GivenLabels.default({}),
  maxResources: GivenQuantities.default({}),
  classes: Classes.default(['default']),
  uses: z.int().min(1).max(10_000).default(100),
});

export const DirectoryEntry = z.object({
  tenant: z.string(),
  cluster: ClusterId,
  region: z.string(),
  labels: Labels,
  classes: z.array(z.string()),
  capacity: Quantities.describe("A hint, in the owner's words."),
  description: z.string(),
  publishedAt: Time,
  updatedAt: Time,
});
export type DirectoryEntry = z.infer<typeof DirectoryEntry>;
export const DirectoryPage = page(DirectoryEntry);

export const NewDirectoryEntry = z.object({
  cluster: ClusterId,
  region: LabelValue.default(''),
  labels: GivenLabels.default({}),
  classes: Classes.default(['default']),
  capacity: GivenQuantities.default({}),
  description: Note.default(''),
});
