/** The catalogue of events: for each type what it means, the schema of its data and an example. Documents and tests read it; no function carries it. */
import * as z from 'zod';
import type { DeliveredType } from './cloud-event.ts';

export interface CatalogueEntry {
  readonly meaning: string;
  /** Whose subject: `peering/pe_…`. */
  readonly subject: string;
  readonly data: z.ZodObject;
  readonly example: Readonly<Record<string, unknown>>;
}

const Time = z.iso.datetime();
const Text = z.string();
const Role = z.enum(['viewer', 'operator', 'admin']);
const Resources = z.record(z.string(), z.string()).describe('Quantities by resource name.');
const Nothing = z.strictObject({});

const entry = <S extends z.ZodObject>(
  meaning: string,
  subject: string,
  data: S,
  example: z.input<S>,
): CatalogueEntry => ({ meaning, subject, data, example });
const plain = (meaning: string, subject: string): CatalogueEntry => entry(meaning, subject, Nothing, {});

const Pair = { consumer: Text.describe('Cluster.'), provider: Text.describe('Cluster.') };
const Network = z
  .strictObject({
    enabled: z.boolean(),
    gatewayLocation: z.enum(['consumer', 'provider']).describe('The side that is dialled.'),
    mtu: z.int(),
    serviceType: Text.optional().describe('Of the dialled gateway.'),
    inBand: z.boolean().describe("Whether the provider's API server is reached through the link."),
  })
  .describe('The link between the two clusters.');
const Terms = z.strictObject({ ...Pair, class: Text, resources: Resources, network: Network.optional() });
const network = { enabled: true, gatewayLocation: 'provider' as const, mtu: 1340, inBand: false };
const terms = {
  consumer: 'rome',
  provider: 'milan',
  class: 'default',
  resources: { cpu: '2', memory: '4Gi' },
  network,
};
const Request = { consumerTenant: Text, consumer: Text, providerTenant: Text, provider: Text };
const request = { consumerTenant: 'acme', consumer: 'rome', providerTenant: 'bolt', provider: 'milan' };
const NewRequest = z.strictObject({ ...Request, resources: Resources, class: Text, reason: Text });
const newRequest = { ...request, resources: { cpu: '2' }, class: 'default', reason: 'spring load' };
const Decided = z.strictObject({
  ...Request,
  peering: Text.optional().describe('The peering that the request became.'),
  answer: Text.optional().describe("What the provider's tenant said to it."),
});
const Named = z.strictObject({ name: Text });

const tenant = 'tenant/acme';
const member = 'member/mb_06f0example0000000000000001';
const issuer = 'issuer/is_06f0example0000000000000001';
const apiKey = 'api-key/ak_06f0example0000000000000001';
const cluster = 'cluster/rome';
const peering = 'peering/pe_06f0example0000000000000001';
const invitation = 'invitation/iv_06f0example0000000000000001';
const asked = 'request/rq_06f0example0000000000000001';
const rule = 'approval-rule/ar_06f0example0000000000000001';
const webhook = 'webhook/wh_06f0example0000000000000001';
const eventTarget = 'event-target/et_06f0example0000000000000001';

export const catalogue: Readonly<Record<DeliveredType, CatalogueEntry>> = {
  'tenant.created': plain('The tenant was made.', tenant),
  'tenant.changed': entry(
    'The state, the limits or the display name of the tenant changed.',
    tenant,
    z.strictObject({ state: Text.optional(), displayName: Text.optional() }),
    { displayName: 'Acme Robotics' },
  ),
  'tenant.deletion-started': plain(
    'The deletion of the tenant was confirmed; from now on it can only be read.',
    tenant,
  ),
  'member.added': entry('A member was added.', member, z.strictObject({ role: Role }), { role: 'operator' }),
  'member.changed': entry('A member has another role or name.', member, z.strictObject({ role: Role }), {
    role: 'admin',
  }),
  'member.removed': plain('A member was removed.', member),
  'issuer.registered': entry(
    'An identity provider was registered.',
    issuer,
    z.strictObject({ url: Text, audience: Text }),
    { url: 'https://login.acme.example', audience: 'isthmus' },
  ),
  'issuer.removed': plain('An identity provider was removed.', issuer),
  'api-key.created': entry('An API key was made.', apiKey, z.strictObject({ name: Text, role: Role }), {
    name: 'ci',
    role: 'operator',
  }),
  'api-key.rotated': entry('An API key was replaced.', apiKey, z.strictObject({ replacedBy: Text }), {
    replacedBy: 'ak_06f0example0000000000000002',
  }),
  'api-key.revoked': plain('An API key is useless now.', apiKey),
  'cluster.join-token-created': entry(
    'A join token was issued: its holder may enroll a cluster under this name until it expires.',
    cluster,
    z.strictObject({ expiresAt: Time }),
    { expiresAt: '2026-01-01T00:15:00.000Z' },
  ),
  'cluster.joined': entry(
    'The agent of a cluster enrolled.',
    cluster,
    z.strictObject({ keyThumbprint: Text.describe('Of the key that the cluster signs with.') }),
    { keyThumbprint: 'Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm8' },
  ),
  'cluster.left': plain('The cluster was removed.', cluster),
  'cluster.labels-changed': entry(
    'The labels of the cluster changed.',
    cluster,
    z.strictObject({ labels: z.record(Text, Text).describe('All that it has now.') }),
    { labels: { tier: 'gold' } },
  ),
  'cluster.facts-changed': entry(
    'The agent reported other facts about its cluster: versions, addresses, capacity, policies.',
    cluster,
    z.strictObject({ policiesChanged: z.boolean() }),
    { policiesChanged: false },
  ),
  'peering.requested': entry('A peering was asked for.', peering, Terms, terms),
  'peering.changed': entry('A peering was asked for on other terms.', peering, Terms, terms),
  'peering.labels-changed': entry(
    'The labels of the peering changed. Of a peering across tenants, only the tenant that labelled it gets this event.',
    peering,
    z.strictObject({ ...Pair, labels: z.record(Text, Text).describe('All that it has now.') }),
    { consumer: 'rome', provider: 'milan', labels: { team: 'shop' } },
  ),
  'peering.phase-changed': entry(
    'A peering reached another phase.',
    peering,
    z.strictObject({ ...Pair, from: Text, to: Text }),
    { consumer: 'rome', provider: 'milan', from: 'Negotiating', to: 'Ready' },
  ),
  'peering.unpeer-requested': entry(
    'Unpeering was requested; the removal of the peering begins.',
    peering,
    z.strictObject(Pair),
    {
      consumer: 'rome',
      provider: 'milan',
    },
  ),
  'invitation.created': entry(
    'A cluster is offered to the holder of the code.',
    invitation,
    z.strictObject({ cluster: Text, uses: z.int(), expiresAt: Time }),
    { cluster: 'milan', uses: 1, expiresAt: '2026-01-08T00:00:00.000Z' },
  ),
  'invitation.redeemed': entry(
    'Another tenant used the invitation.',
    invitation,
    z.strictObject({ peering: Text, tenant: Text, cluster: Text.describe('The consumer.'), at: Time }),
    {
      peering: 'pe_06f0example0000000000000001',
      tenant: 'acme',
      cluster: 'rome',
      at: '2026-01-02T00:00:00.000Z',
    },
  ),
  'invitation.revoked': entry(
    'The invitation can no longer be used.',
    invitation,
    z.strictObject({ peerings: z.array(Text).describe('Made with it.') }),
    { peerings: ['pe_06f0example0000000000000001'] },
  ),
  'request.received': entry('Another tenant asks for a cluster of yours.', asked, NewRequest, newRequest),
  'request.sent': entry('You asked for a cluster of another tenant.', asked, NewRequest, newRequest),
  'request.approved': entry('The request became a peering.', asked, Decided, {
    ...request,
    peering: 'pe_06f0example0000000000000001',
  }),
  'request.rejected': entry('The asked tenant said no.', asked, Decided, { ...request, answer: 'not this week' }),
  'request.withdrawn': entry('The asking tenant took it back.', asked, Decided, request),
  'request.expired': entry('The request was not answered in time.', asked, Decided, request),
  'approval-rule.created': entry('Requests that match are approved by themselves from now on.', rule, Named, {
    name: 'partners',
  }),
  'approval-rule.deleted': entry('An approval rule is gone.', rule, Named, { name: 'partners' }),
  'directory.published': entry(
    'A cluster is shown to other tenants, or is shown differently.',
    'cluster/milan',
    z.strictObject({ region: Text, classes: z.array(Text) }),
    { region: 'eu-1', classes: ['default'] },
  ),
  'directory.unpublished': plain('A cluster is shown to other tenants no longer.', 'cluster/milan'),
  'webhook.created': entry('A webhook was made.', webhook, z.strictObject({ types: z.array(Text) }), {
    types: ['dev.isthmus.peering.*'],
  }),
  'webhook.changed': entry(
    'The URL, the types or the description of a webhook changed.',
    webhook,
    z.strictObject({ types: z.array(Text) }),
    { types: ['*'] },
  ),
  'webhook.deleted': plain('A webhook was deleted; what waited for it is dropped.', webhook),
  'webhook.secret-rotated': entry(
    'A webhook signs with a new secret, and with the old one as well until then.',
    webhook,
    z.strictObject({ oldSecretExpiresAt: Time }),
    { oldSecretExpiresAt: '2026-01-02T00:00:00.000Z' },
  ),
  'webhook.enabled': plain('The webhook was switched on.', webhook),
  'webhook.disabled': entry(
    'The webhook gets nothing more: it was switched off by request, or it failed for too long.',
    webhook,
    z.strictObject({ reason: Text }),
    { reason: 'every delivery failed since 2026-01-01T00:00:00.000Z' },
  ),
  'event-target.created': entry('An event target was made.', eventTarget, z.strictObject({ types: z.array(Text) }), {
    types: ['dev.isthmus.peering.*'],
  }),
  'event-target.changed': entry(
    'The role, the types or the description of an event target changed.',
    eventTarget,
    z.strictObject({ types: z.array(Text) }),
    { types: ['*'] },
  ),
  'event-target.deleted': plain('An event target was deleted; what waited for it is dropped.', eventTarget),
  'event-target.enabled': plain('The event target was switched on.', eventTarget),
  'event-target.disabled': entry(
    'The event target gets nothing more: it was switched off by request, or it failed for too long.',
    eventTarget,
    z.strictObject({ reason: Text }),
    { reason: 'every delivery failed since 2026-01-01T00:00:00.000Z' },
  ),
  'webhook.test': entry(
    'Sent by a test to this one webhook or event target.',
    webhook,
    z.strictObject({ message: Text }),
    {
      message: 'a test of this webhook',
    },
  ),
};
