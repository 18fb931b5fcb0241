/** For each error code that a use case answers, by operation: a request that meets it. */
import { expect } from 'vitest';
import { newAgentKeys } from '#control/testing/agent-keys.ts';
import { worldlyFacts } from '#control/testing/two-tenants.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { imaginedProviders } from './imagined-providers.ts';
import { receiverRefusals } from './receiver-refusals.ts';
import { type Cases, made, times } from './refusal-case.ts';
import type { RefusingBroker } from './refusing-broker.ts';

const day = 86_400_000;
const rule = { name: 'all', tenants: ['*'] };
const unconsenting = {
  ...worldlyFacts,
  policies: worldlyFacts.policies.map((policy) => ({
    ...policy,
    asProvider: { ...policy.asProvider, classes: ['gold'] },
  })),
};

/** A request of acme's for a cluster of bolt's that awaits an answer. */
async function pending(b: RefusingBroker): Promise<string> {
  await b.publish();
  return made(b.ask());
}
/** Both clusters have the name that the other one's tenant has a peer of already. */
async function twoRomes(b: RefusingBroker): Promise<void> {
  await b.joinAs('bolt', 'rome');
  await b.post('bolt', '/v1/directory', { cluster: 'rome' });
}

const cases: Cases = {
  createPeering: {
    peer_self: (b) => b.peer({ provider: 'rome' }),
    cluster_unknown: (b) => b.peer({ provider: 'nowhere' }),
    policy_refused: (b) => b.peer({ class: 'gold' }),
    cluster_id_taken: async (b) => {
      await b.joinAs('acme', 'milan');
      await b.redeem((await b.invite()).code);
      return b.post('acme', '/v1/peerings', { consumer: 'milan', provider: 'rome' });
    },
    consent_exceeded: async (b) => {
      await b.redeem((await b.invite({ limits: { cpu: '1' } })).code);
      return b.peer({ provider: 'milan', resources: { cpu: '9' } });
    },
    in_use: async (b) => {
      const id = await made(b.peer());
      await b.report({ sets: [] });
      await b.remove('acme', `/v1/peerings/${id}`);
      return b.peer();
    },
    owned_by_object: async (b) => {
      const asked = { provider: 'siena', resources: { cpu: '1' }, class: 'default', deleting: false };
      const reported = await b.report({ asks: [{ name: 'to-siena', uid: 'u1', generation: 1, ...asked }] });
      expect(reported.status).toBe(200);
      return b.peer({ resources: { cpu: '2' } });
    },
    limit_reached: async (b) => {
      await b.limit('acme', { peerings: 0 });
      return b.peer();
    },
  },
  deletePeering: {
    peer_alive: async (b) => b.remove('acme', `/v1/peerings/${await made(b.peer())}?force=true`),
  },
  createRequest: {
    not_found: (b) => b.ask(),
    cluster_unknown: async (b) => {
      await b.publish();
      return b.ask({ consumer: 'nowhere' });
    },
    policy_refused: async (b) => {
      await b.publish();
      await b.post('bolt', '/v1/approval-rules', { ...rule, classes: ['*'] });
      return b.ask({ class: 'gold' });
    },
    cluster_id_taken: async (b) => {
      await twoRomes(b);
      await b.post('bolt', '/v1/approval-rules', rule);
      return b.ask({ provider: 'rome' });
    },
    in_use: async (b) => {
      await b.publish();
      await b.post('bolt', '/v1/approval-rules', rule);
      await b.ask();
      return b.ask();
    },
    limit_reached: async (b) => {
      await b.publish();
      await b.limit('acme', { peerings: 0 });
      return b.ask();
    },
  },
  approveRequest: {
    request_closed: async (b) => {
      const id = await pending(b);
      await b.remove('acme', `/v1/requests/${id}`);
      return b.post('bolt', `/v1/requests/${id}/approve`, {});
    },
    cluster_unknown: async (b) => {
      const id = await pending(b);
      await b.remove('acme', '/v1/clusters/rome');
      return b.post('bolt', `/v1/requests/${id}/approve`, {});
    },
    policy_refused: async (b) => {
      const id = await pending(b);
      await b.remove('bolt', '/v1/clusters/milan');
      await b.joinAs('bolt', 'milan', unconsenting);
      return b.post('bolt', `/v1/requests/${id}/approve`, {});
    },
    cluster_id_taken: async (b) => {
      await twoRomes(b);
      const id = await made(b.ask({ provider: 'rome' }));
      return b.post('bolt', `/v1/requests/${id}/approve`, {});
    },
    in_use: async (b) => {
      const id = await pending(b);
      await b.redeem((await b.invite()).code);
      return b.post('bolt', `/v1/requests/${id}/approve`, {});
    },
    limit_reached: async (b) => {
      const id = await pending(b);
      await b.limit('bolt', { peerings: 0 });
      return b.post('bolt', `/v1/requests/${id}/approve`, {});
    },
  },
  rejectRequest: {
    request_closed: async (b) => {
      const id = await pending(b);
      await b.remove('acme', `/v1/requests/${id}`);
      return b.post('bolt', `/v1/requests/${id}/reject`, {});
    },
  },
  withdrawRequest: {
    request_closed: async (b) => {
      const id = await pending(b);
      await b.post('bolt', `/v1/requests/${id}/reject`, {});
      return b.remove('acme', `/v1/requests/${id}`);
    },
  },
  createInvitation: {
    cluster_unknown: (b) => b.post('bolt', '/v1/invitations', { cluster: 'nowhere' }),
    limit_reached: async (b) => {
      await b.limit('bolt', { peerings: 0 });
      return b.post('bolt', '/v1/invitations', { cluster: 'milan' });
    },
  },
  redeemInvitation: {
    invitation_unknown: (b) => b.redeem('isi_none'),
    invitation_closed: async (b) => {
      const { code, invitation } = await b.invite();
      await b.remove('bolt', `/v1/invitations/${invitation.id}`);
      return b.redeem(code);
    },
    cluster_unknown: async (b) => b.redeem((await b.invite()).code, { consumer: 'nowhere' }),
    policy_refused: async (b) => b.redeem((await b.invite({ classes: ['*'] })).code, { class: 'gold' }),
    consent_exceeded: async (b) =>
      b.redeem((await b.invite({ limits: { cpu: '1' } })).code, { resources: { cpu: '2' } }),
    cluster_id_taken: async (b) => {
      await twoRomes(b);
      return b.redeem((await b.invite({ cluster: 'rome' })).code);
    },
    in_use: async (b) => {
      await b.redeem((await b.invite()).code);
      return b.redeem((await b.invite()).code);
    },
    limit_reached: async (b) => {
      const { code } = await b.invite();
      await b.limit('acme', { peerings: 0 });
      return b.redeem(code);
    },
  },
  createApprovalRule: {
    limit_reached: async (b) => {
      await times(50, () => b.post('bolt', '/v1/approval-rules', rule));
      return b.post('bolt', '/v1/approval-rules', rule);
    },
  },
  publishCluster: { cluster_unknown: (b) => b.post('bolt', '/v1/directory', { cluster: 'nowhere' }) },
  createKey: {
    fields_conflict: (b) => b.post('acme', '/v1/keys', { name: 'ci', role: 'viewer', scopes: ['keys:write'] }),
  },
  rotateKey: {
    in_use: async (b) => {
      const id = await made(b.post('acme', '/v1/keys', { name: 'ci', role: 'viewer' }));
      await b.post('acme', `/v1/keys/${id}/rotate`, {});
      return b.post('acme', `/v1/keys/${id}/rotate`, {});
    },
  },
  revokeKey: {
    in_use: async (b) => {
      const { body } = await b.get('acme', '/v1/keys');
      return b.remove('acme', `/v1/keys/${body.items[0].id}`);
    },
  },
  addMember: {
    fields_conflict: (b) => b.post('acme', '/v1/members', { role: 'viewer' }),
    already_exists: async (b) => {
      await b.post('acme', '/v1/members', { email: 'a@example.com', role: 'viewer' });
      return b.post('acme', '/v1/members', { email: 'a@example.com', role: 'admin' });
    },
  },
  registerIssuer: {
    url_refused: {
      documents: { refusal: () => 'it has a private address', json: async () => ({}) },
      meet: (b) => b.post('acme', '/v1/issuers', { url: 'https://idp.example.com', audience: 'a' }),
    },
    issuer_unusable: {
      documents: { refusal: () => undefined, json: () => Promise.reject(new AppError('issuer_unreachable', 'no')) },
      meet: (b) => b.post('acme', '/v1/issuers', { url: 'https://idp.example.com', audience: 'a' }),
    },
    fields_conflict: {
      documents: imaginedProviders,
      meet: (b) =>
        b.post('acme', '/v1/issuers', { url: 'https://idp.example.com', audience: 'a', roles: { boss: 'admin' } }),
    },
    already_exists: {
      documents: imaginedProviders,
      meet: async (b) => {
        await b.post('acme', '/v1/issuers', { url: 'https://idp.example.com', audience: 'a' });
        return b.post('acme', '/v1/issuers', { url: 'https://idp.example.com', audience: 'a' });
      },
    },
    limit_reached: {
      documents: imaginedProviders,
      meet: async (b) => {
        await times(10, (i) => b.post('acme', '/v1/issuers', { url: 'https://idp.example.com', audience: `a${i}` }));
        return b.post('acme', '/v1/issuers', { url: 'https://idp.example.com', audience: 'more' });
      },
    },
  },
  changeTenant: {
    tenant_deleting: async (b) => {
      await b.peer();
      await b.remove('operator', '/v1/tenants/acme?confirm=acme&force=true');
      return b.patch('operator', '/v1/tenants/acme', { displayName: 'Acme' });
    },
  },
  deleteTenant: {
    fields_conflict: (b) => b.remove('operator', '/v1/tenants/acme?confirm=bolt'),
    in_use: async (b) => {
      await b.peer();
      return b.remove('operator', '/v1/tenants/acme?confirm=acme');
    },
  },
  recoverTenant: {
    tenant_deleting: async (b) => {
      await b.peer();
      await b.remove('operator', '/v1/tenants/acme?confirm=acme&force=true');
      return b.post('operator', '/v1/tenants/acme/recovery', { reason: 'ticket 4711' });
    },
  },
  confirmDeletion: {
    fields_conflict: (b) => b.post('acme', '/v1/tenant/deletion/confirm', { name: 'bolt', confirmation: 'x' }),
    in_use: async (b) => {
      await b.peer();
      const { body } = await b.post('acme', '/v1/tenant/deletion');
      return b.post('acme', '/v1/tenant/deletion/confirm', { name: 'acme', confirmation: body.confirmation });
    },
  },
  ...receiverRefusals,
  listEvents: {
    cursor_expired: async (b) => {
      const { body } = await b.get('acme', '/v1/events');
      await b.post('acme', '/v1/keys', { name: 'missed', role: 'viewer' });
      b.fixture.clock.advance(2 * day);
      await b.fixture.store.sweep();
      return b.get('acme', `/v1/events?cursor=${body.cursor}`);
    },
  },
  deleteCluster: {
    in_use: async (b) => {
      await b.peer();
      return b.remove('acme', '/v1/clusters/rome');
    },
  },
  enroll: {
    join_token_unknown: (b) => b.enroll('pisa', 'never-made'),
    join_token_used: async (b) => {
      const token = await b.joinToken('pisa');
      await b.enroll('pisa', token);
      return b.enroll('pisa', token, newAgentKeys());
    },
    join_token_expired: async (b) => {
      const token = await b.joinToken('pisa');
      b.fixture.clock.advance(16 * 60_000);
      return b.enroll('pisa', token);
    },
    cluster_key_known: async (b) => b.enroll('rome', await b.joinToken('rome'), newAgentKeys()),
    limit_reached: async (b) => {
      const token = await b.joinToken('pisa');
      await b.limit('acme', { clusters: 0 });
      return b.enroll('pisa', token);
    },
  },
};

export const refusalCases = Object.entries(cases).flatMap(([operation, codes]) =>
  Object.entries(codes).map(([code, found]) => {
    const { meet, ...options } = typeof found === 'function' ? { meet: found } : found;
    return { operation, code, meet, options };
  }),
);
