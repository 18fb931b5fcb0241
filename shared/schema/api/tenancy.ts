/** Tenants, members and identity providers in the REST API. */
import * as z from 'zod';
import { printable, webUrl } from '../definition/printable-text.ts';
import { IssuedApiKey, Role } from './resources.ts';

const Time = z.iso.datetime().describe('RFC 3339, UTC.');
const Limit = z.int().min(0).max(10_000_000);
/** Nothing that would spoil a terminal or a log. */
const Text = (max: number) => printable(z.string().min(1).max(max));

const TenantName = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be a DNS-1123 label of at most 63 characters')
  .describe('Given once: it is part of every API key, and never given again.');

const ServiceLimits = z.object({
  clusters: Limit.describe('Clusters that have joined and not left.'),
  peerings: Limit.describe('Peerings that have not ended.'),
  requestsPerMinute: Limit.describe('Requests of members and keys.'),
  eventsPerMinute: Limit.describe('Requests of agents.'),
});

const TenantStateName = z.enum(['active', 'suspended', 'deleting']);

export const TenantResource = z.object({
  name: TenantName,
  displayName: z.string(),
  state: TenantStateName.describe(
    'suspended: every request is refused; running peerings go on. deleting: can only be read.',
  ),
  createdAt: Time,
  limits: ServiceLimits,
  suspendedReason: z.string().optional(),
  deletionStartedAt: Time.optional(),
  version: z.int(),
});
export type TenantResource = z.infer<typeof TenantResource>;

export const OwnTenantResource = TenantResource.extend({
  usage: z.object({ clusters: z.int(), peerings: z.int() }).describe('What is used of the limits that count things.'),
});
export type OwnTenantResource = z.infer<typeof OwnTenantResource>;

export const NewTenant = z.object({
  name: TenantName,
  displayName: Text(100).optional(),
  limits: z.strictObject(ServiceLimits.partial().shape).optional(),
});

export const TenantRecovery = z.object({
  reason: Text(500).describe('Why the tenant needs a key from outside; it finds this in its audit log.'),
});

export const NewTenantAnswer = z.object({
  tenant: TenantResource,
  firstKey: IssuedApiKey.describe('The first admin key of the tenant, to be handed to its owner.'),
});

export const TenantChange = z.object({
  displayName: Text(100).optional(),
  state: z.enum(['active', 'suspended']).optional(),
  reason: Text(500).optional().describe('Why it is suspended; its members are told.'),
  limits: z
    .strictObject({
      clusters: Limit.nullable().optional(),
      peerings: Limit.nullable().optional(),
      requestsPerMinute: Limit.nullable().optional(),
      eventsPerMinute: Limit.nullable().optional(),
    })
    .optional()
    .describe('null goes back to the default of the deployment.'),
});

export const TenantRename = z.object({ displayName: Text(100) });

export const DeletionRequested = z.object({
  confirmation: z.string().describe('Shown once: send it back with the name of the tenant within 15 minutes.'),
  expiresAt: Time,
  peerings: z.array(z.string()).describe('Peerings that have not ended; with any, the deletion needs force.'),
});

export const DeletionConfirmation = z.object({
  name: z.string().min(1).max(63).describe('The name of the tenant, typed again.'),
  confirmation: z.string().min(1).max(100),
  force: z.boolean().default(false).describe('Unpeer what has not ended.'),
});

export const DeletionProgress = z.object({
  state: z.enum(['deleting', 'deleted']),
  peerings: z.array(z.string()).describe('Peerings that still have to end.'),
});

export type DeletionProgress = z.infer<typeof DeletionProgress>;

export const Member = z.object({
  id: z.string(),
  email: z.string().optional(),
  issuer: z.string().optional(),
  subject: z.string().optional(),
  name: z.string().optional(),
  role: Role,
  createdAt: Time,
  version: z.int(),
});
export type Member = z.infer<typeof Member>;

export const NewMember = z.object({
  email: z
    .email()
    .max(254)
    .optional()
    .describe('Counts when the issuer says that it is verified. Instead of issuer and subject.'),
  issuer: z.url().max(500).optional(),
  subject: z.string().min(1).max(255).optional(),
  name: Text(100).optional(),
  role: Role,
});

export const MemberChange = z.object({ role: Role.optional(), name: Text(100).optional() });

const ClaimName = z.string().min(1).max(200);
const ClaimNames = z.strictObject({
  subject: ClaimName.optional().describe('Default sub.'),
  email: ClaimName.optional().describe('Default email; counts beside email_verified: true.'),
  role: ClaimName.optional().describe('A word or a list of words that roles maps. Absent: only members are let in.'),
});

export const Issuer = z.object({
  id: z.string(),
  url: z.string(),
  audience: z.string(),
  claims: ClaimNames,
  roles: z.record(z.string(), Role),
  createdAt: Time,
  version: z.int(),
});
export type Issuer = z.infer<typeof Issuer>;

export const NewIssuer = z.object({
  url: webUrl(500).describe('As in the iss claim of its tokens; its keys are found by OpenID Connect discovery.'),
  audience: z.string().min(1).max(255).describe('As in the aud claim.'),
  claims: ClaimNames.optional(),
  roles: z
    .record(z.string().min(1).max(200), Role)
    .refine((roles) => Object.keys(roles).length <= 50, 'must have at most 50 words')
    .optional()
    .describe('Word in the role claim to role in this tenant.'),
});

const page = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    cursor: z.string().optional().describe('Present when there may be more: ask again with it.'),
  });
export const TenantPage = page(TenantResource);
export const MemberPage = page(Member);
export const IssuerPage = page(Issuer);
