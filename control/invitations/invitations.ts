/** Invitations: a tenant offers one of its clusters to the holder of a code, within limits, until it revokes the invitation. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { newSecret, sameText, sha256Hex } from '../access/secrets.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { Coordinator } from '../model/coordinator.ts';
import type { CrossTenant } from '../model/cross-tenant.ts';
import type { PageRequest } from '../model/deps.ts';
import type { InvitationRecord } from '../model/invitation.ts';
import type { PeeringView, Resources } from '../model/peering.ts';
import type { PeeringRecord } from '../model/peering-records.ts';
import { type CrossTenantDeps, planCrossTenant } from '../peerings/cross-tenant/create.ts';
import { checkTerms, upTo } from '../peerings/terms/terms.ts';
import { peeringView } from '../peerings/use-cases/peerings.ts';
import type { Item, Page } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';
import { pageOf } from '../store/pages.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { untilWritten } from '../store/until-written.ts';
import {
  checkNew,
  codeText,
  type InvitationView,
  invitationView,
  keptAfterMs,
  mustBeOpen,
  type NewInvitation,
  parseCode,
} from './invitation.ts';

interface Redeem {
  readonly code: string;
  /** A cluster of the redeeming tenant. */
  readonly consumer: string;
  /** What is not named is asked for up to the invitation's limit. */
  readonly resources?: Resources;
  /** Default: the first class of the invitation. */
  readonly class?: string;
}

interface Redeemed {
  readonly id: string;
  readonly created: boolean;
}

interface IssuedInvitation {
  readonly invitation: InvitationView;
  readonly code: string;
}

export interface Invitations {
  /** `code` is shown once and stored as a hash. */
  create(caller: Caller, input: NewInvitation, signal?: AbortSignal): Promise<IssuedInvitation>;
  get(caller: Caller, id: string, signal?: AbortSignal): Promise<InvitationView>;
  list(caller: Caller, page?: PageRequest, signal?: AbortSignal): Promise<Page<InvitationView>>;
  /** Revokes it: it cannot be used any more. Peerings that both clusters have agreed to stay; the others end. */
  revoke(caller: Caller, id: string, signal?: AbortSignal): Promise<InvitationView>;
  /** Makes the peering, once per consumer and invitation. `invitation_unknown`, `invitation_closed`, `consent_exceeded`, `cluster_id_taken`. */
  redeem(
    caller: Caller,
    input: Redeem,
    signal?: AbortSignal,
  ): Promise<{ readonly peering: PeeringView; readonly created: boolean }>;
}

type InvitationDeps = CrossTenantDeps;

export function createInvitations(deps: InvitationDeps, coordinator: Coordinator): Invitations {
  const { store, clock, ids } = deps;

  async function load(caller: Caller, id: string, signal?: AbortSignal): Promise<Item<InvitationRecord>> {
    const { pk, sk } = key.invitation(caller.tenant, id);
    const item = await store.get<InvitationRecord>(pk, sk, signal);
    if (!item) throw new AppError('not_found', `there is no invitation ${JSON.stringify(id)}`, { detail: { id } });
    return item;
  }

  const view = ({ value, version }: Item<InvitationRecord>): InvitationView =>
    invitationView(value, version, clock.now());

  /** The same words for every fault of the code: a guess teaches nothing. */
  async function byCode(code: string, signal?: AbortSignal): Promise<Item<InvitationRecord> & { tenant: string }> {
    const parsed = parseCode(code);
    const { pk, sk } = key.invitation(parsed?.tenant ?? 'none', parsed?.id ?? 'none');
    const item = await store.get<InvitationRecord>(pk, sk, signal);
    if (!parsed || !item || !sameText(item.value.hash, sha256Hex(code)))
      throw new AppError('invitation_unknown', 'no invitation has this code');
    return { ...item, tenant: parsed.tenant };
  }

  async function redeemOnce(caller: Caller, input: Redeem, signal?: AbortSignal) {
    const { tenant: provider, ...item } = await byCode(input.code, signal);
    const { value } = item;
    if (provider === caller.tenant) {
      throw new AppError('invalid_input', 'this invitation is of your own tenant; peer its clusters directly', {
        detail: { field: 'code', accepted: 'a code of another tenant' },
      });
    }
    const { id, cluster, limits, classes, expiresAt } = value;
    const [first = 'default'] = classes;
    const requested = checkTerms({
      consumer: input.consumer,
      provider: cluster,
      resources: input.resources ?? {},
      class: input.class ?? (first === '*' ? 'default' : first),
    });
    const terms = { ...requested, resources: upTo(limits, requested.resources) };
    const across: CrossTenant = {
      consumer: caller.tenant,
      provider,
      grant: { by: 'invitation', id, limits, classes, lapsesAt: expiresAt },
    };
    const before = value.redemptions.find((r) => r.tenant === caller.tenant && r.cluster === terms.consumer);
    if (!before) mustBeOpen(value, clock.now());
    const plan = await planCrossTenant(deps, { who: caller, across, terms }, signal);
    if (!plan.created) return plan;
    mustBeOpen(value, clock.now());
    const redemption = { peering: plan.id, tenant: caller.tenant, cluster: terms.consumer, at: clock.now() };
    const spent: InvitationRecord = { ...value, redemptions: [...value.redemptions, redemption] };
    const subject = `invitation/${id}`;
    const { pk, sk, version } = item;
    await store.transact(
      [
        { op: 'update', pk, sk, value: spent, ifVersion: version, expiresAt: expiresAt + keptAfterMs },
        ...plan.ops,
        ...auditOps(
          deps,
          { tenant: provider, principal: `tenant/${caller.tenant}`, from: 'broker', requestId: caller.requestId },
          { action: 'invitation.redeem', subject, after: redemption },
        ),
        ...remembered(caller, { id: plan.id, created: true }),
      ],
      [...plan.events, eventOf(deps, provider, 'invitation.redeemed', subject, redemption)],
      signal,
    );
    return plan;
  }

  return {
    async create(caller, input, signal) {
      mustHave(caller, 'invitations:write');
      const before = earlier<IssuedInvitation>(caller);
      if (before) return before;
      const { lifeMs, ...checked } = checkNew(input);
      const { tenant } = caller;
      const at = key.cluster(tenant, checked.cluster);
      const cluster = await store.get<ClusterRecord>(at.pk, at.sk, signal);
      if (cluster?.value.state !== 'joined') {
        throw new AppError('cluster_unknown', `no cluster ${checked.cluster} has joined`, {
          detail: { cluster: checked.cluster },
        });
      }
      await deps.capacity.mustHaveRoom(tenant, 'peerings', signal);
      const id = ids.next('iv');
      const code = codeText(tenant, id, newSecret(ids));
      const now = clock.now();
      const expiresAt = now + lifeMs;
      const record: InvitationRecord = {
        id,
        ...checked,
        createdAt: now,
        createdBy: caller.principal,
        expiresAt,
        redemptions: [],
        hash: sha256Hex(code),
      };
      const subject = `invitation/${id}`;
      const { cluster: name, limits, classes, uses, note } = checked;
      const answer: IssuedInvitation = { invitation: invitationView(record, 1, now), code };
      await store.transact(
        [
          { op: 'put', ...key.invitation(tenant, id), value: record, expiresAt: expiresAt + keptAfterMs },
          ...auditOps(deps, caller, {
            action: 'invitation.create',
            subject,
            after: { cluster: name, limits, classes, uses, note, expiresAt },
          }),
          ...remembered(caller, answer),
        ],
        [eventOf(deps, tenant, 'invitation.created', subject, { cluster: name, uses, expiresAt })],
        signal,
      );
      return answer;
    },

    async get(caller, id, signal) {
      mustHave(caller, 'invitations:read');
      return view(await load(caller, id, signal));
    },

    async list(caller, page = {}, signal) {
      mustHave(caller, 'invitations:read');
      return pageOf<InvitationRecord, InvitationView>(
        store,
        { partition: partition.invitations(caller.tenant) },
        page,
        view,
        signal,
      );
    },

    async revoke(caller, id, signal) {
      mustHave(caller, 'invitations:write');
      const revoked = await untilWritten(async () => {
        const item = await load(caller, id, signal);
        if (item.value.revokedAt !== undefined) return item;
        const { pk, sk, version, expiresAt } = item;
        const value: InvitationRecord = { ...item.value, revokedAt: clock.now() };
        const subject = `invitation/${id}`;
        const peerings = value.redemptions.map(({ peering }) => peering);
        await store.transact(
          [
            { op: 'update', pk, sk, value, ifVersion: version, ...(expiresAt === undefined ? {} : { expiresAt }) },
            ...auditOps(deps, caller, { action: 'invitation.revoke', subject, after: { peerings } }),
          ],
          [eventOf(deps, caller.tenant, 'invitation.revoked', subject, { peerings })],
          signal,
        );
        return { ...item, value, version: version + 1 };
      }, signal);
      for (const { peering } of revoked.value.redemptions) await coordinator.look(caller.tenant, peering, signal);
      return view(revoked);
    },

    async redeem(caller, input, signal) {
      mustHave(caller, 'peerings:write');
      const { id, created } =
        earlier<Redeemed>(caller) ?? (await untilWritten(() => redeemOnce(caller, input, signal), signal));
      await coordinator.look(caller.tenant, id, signal);
      const { pk, sk } = key.peering(caller.tenant, id);
      const copy = await store.get<PeeringRecord>(pk, sk, signal);
      if (!copy) throw new AppError('not_found', `peering ${id} is gone`, { detail: { peering: id } });
      return { peering: peeringView(copy.value, copy.version, caller.tenant), created };
    },
  };
}
