/** Auto-approval rules of a tenant: made, listed, deleted, asked. They decide on requests that come after them. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOp, eventOf } from '../audit/record.ts';
import type { ControlDeps, PageRequest } from '../deps.ts';
import { key, partition } from '../keys.ts';
import { pageOf } from '../pages.ts';
import type { Page } from '../ports/store.ts';
import { type ApprovalRule, checkRule, type NewApprovalRule, type RuleInput, ruleAllows } from './approval-rule.ts';

export interface ApprovalRules {
  create(caller: Caller, input: NewApprovalRule, signal?: AbortSignal): Promise<ApprovalRule>;
  list(caller: Caller, page?: PageRequest, signal?: AbortSignal): Promise<Page<ApprovalRule>>;
  delete(caller: Caller, id: string, signal?: AbortSignal): Promise<ApprovalRule>;
  /** The first rule of the tenant that approves this. */
  find(
    tenant: string,
    asked: RuleInput,
    signal?: AbortSignal,
  ): Promise<{ rule: ApprovalRule; version: number } | undefined>;
}

const maxRules = 100;

export function createApprovalRules(deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>): ApprovalRules {
  const { store, clock, ids } = deps;
  const all = (tenant: string, signal?: AbortSignal) =>
    store.query<ApprovalRule>({ partition: partition.approvalRules(tenant), limit: maxRules }, signal);

  return {
    async create(caller, input, signal) {
      mustHave(caller, 'approval-rules:write');
      const checked = checkRule(input);
      const { tenant } = caller;
      const { items } = await all(tenant, signal);
      if (items.length >= maxRules) {
        throw new AppError('in_use', `a tenant has at most ${maxRules} approval rules; delete one first`, {
          detail: { limit: maxRules },
        });
      }
      const id = ids.next('ar');
      const rule: ApprovalRule = { id, ...checked, createdAt: clock.now(), createdBy: caller.principal };
      const subject = `approval-rule/${id}`;
      await store.transact(
        [
          { op: 'put', ...key.approvalRule(tenant, id), value: rule },
          auditOp(deps, caller, { action: 'approval-rule.create', subject, after: checked }),
        ],
        [eventOf(deps, tenant, 'approval-rule.created', subject, { name: rule.name })],
        signal,
      );
      return rule;
    },

    async list(caller, page = {}, signal) {
      mustHave(caller, 'approval-rules:read');
      const query = { partition: partition.approvalRules(caller.tenant) };
      return pageOf<ApprovalRule, ApprovalRule>(store, query, page, ({ value }) => value, signal);
    },

    async delete(caller, id, signal) {
      mustHave(caller, 'approval-rules:write');
      const { pk, sk } = key.approvalRule(caller.tenant, id);
      const item = await store.get<ApprovalRule>(pk, sk, signal);
      if (!item) throw new AppError('not_found', `there is no approval rule ${JSON.stringify(id)}`, { detail: { id } });
      const subject = `approval-rule/${id}`;
      await store.transact(
        [
          { op: 'delete', pk, sk, ifVersion: item.version },
          auditOp(deps, caller, { action: 'approval-rule.delete', subject, before: item.value }),
        ],
        [eventOf(deps, caller.tenant, 'approval-rule.deleted', subject, { name: item.value.name })],
        signal,
      );
      return item.value;
    },

    async find(tenant, asked, signal) {
      const { items } = await all(tenant, signal);
      const item = items.find(({ value }) => ruleAllows(value, asked));
      return item && { rule: item.value, version: item.version };
    },
  };
}
