/**
 * Auto-approval rules of a tenant: made, listed, deleted, asked. They decide on requests that come after them. All are one item: a tenant that
 * asks must not have to search another one's data, and an approval counts in the very transaction that it permits.
 */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Item, Op, Page } from '../ports/store.ts';
import { key } from '../store/keys.ts';
import { decodeCursor, encodeCursor, limitOf } from '../store/pages.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { untilWritten } from '../store/until-written.ts';
import { type ApprovalRule, checkRule, type NewApprovalRule, type RuleInput, ruleAllows } from './approval-rule.ts';

export interface ApprovalRules {
  create(caller: Caller, input: NewApprovalRule, signal?: AbortSignal): Promise<ApprovalRule>;
  list(caller: Caller, page?: PageRequest, signal?: AbortSignal): Promise<Page<ApprovalRule>>;
  delete(caller: Caller, id: string, signal?: AbortSignal): Promise<ApprovalRule>;
  /** The first rule of the tenant that approves this, and the operation that counts it. */
  find(
    tenant: string,
    requested: RuleInput,
    signal?: AbortSignal,
  ): Promise<{ readonly rule: ApprovalRule; readonly spend: Op } | undefined>;
}

interface RulesRecord {
  readonly rules: readonly ApprovalRule[];
}

const maxRules = 50;

const listName = ({ tenant }: Caller): string => `approval rules of ${tenant}`;

export function createApprovalRules(deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>): ApprovalRules {
  const { store, clock, ids } = deps;

  async function load(tenant: string, signal?: AbortSignal): Promise<Item<RulesRecord> | undefined> {
    const { pk, sk } = key.approvalRules(tenant);
    return store.get<RulesRecord>(pk, sk, signal);
  }

  const writeOp = (tenant: string, before: Item<RulesRecord> | undefined, rules: readonly ApprovalRule[]): Op => {
    const value: RulesRecord = { rules };
    const at = key.approvalRules(tenant);
    return before ? { op: 'update', ...at, value, ifVersion: before.version } : { op: 'put', ...at, value };
  };

  return {
    async create(caller, input, signal) {
      mustHave(caller, 'approval-rules:write');
      const done = earlier<ApprovalRule>(caller);
      if (done) return done;
      const checked = checkRule(input);
      const { tenant } = caller;
      const id = ids.next('ar');
      const rule: ApprovalRule = { id, ...checked, used: 0, createdAt: clock.now(), createdBy: caller.principal };
      const subject = `approval-rule/${id}`;
      await untilWritten(async () => {
        const before = await load(tenant, signal);
        const rules = before?.value.rules ?? [];
        if (rules.length >= maxRules) {
          throw new AppError('limit_reached', `a tenant has at most ${maxRules} approval rules; delete one first`, {
            detail: { limit: maxRules, of: 'approval rules' },
          });
        }
        await store.transact(
          [
            writeOp(tenant, before, [...rules, rule]),
            ...auditOps(deps, caller, { action: 'approval-rule.create', subject, after: checked }),
            ...remembered(caller, rule),
          ],
          [eventOf(deps, tenant, 'approval-rule.created', subject, { name: rule.name })],
          signal,
        );
      }, signal);
      return rule;
    },

    async list(caller, page = {}, signal) {
      mustHave(caller, 'approval-rules:read');
      const limit = limitOf(page);
      const after = decodeCursor(listName(caller), page.cursor);
      const rules = (await load(caller.tenant, signal))?.value.rules ?? [];
      const rest = after === undefined ? rules : rules.filter(({ id }) => id > after);
      const items = rest.slice(0, limit);
      const last = items.at(-1);
      return { items, ...(rest.length > limit && last ? { cursor: encodeCursor(listName(caller), last.id) } : {}) };
    },

    async delete(caller, id, signal) {
      mustHave(caller, 'approval-rules:write');
      return untilWritten(async () => {
        const before = await load(caller.tenant, signal);
        const rules = before?.value.rules ?? [];
        const rule = rules.find((one) => one.id === id);
        if (!rule)
          throw new AppError('not_found', `there is no approval rule ${JSON.stringify(id)}`, { detail: { id } });
        const subject = `approval-rule/${id}`;
        await store.transact(
          [
            writeOp(
              caller.tenant,
              before,
              rules.filter((one) => one.id !== id),
            ),
            ...auditOps(deps, caller, { action: 'approval-rule.delete', subject, before: rule }),
          ],
          [eventOf(deps, caller.tenant, 'approval-rule.deleted', subject, { name: rule.name })],
          signal,
        );
        return rule;
      }, signal);
    },

    async find(tenant, requested, signal) {
      const item = await load(tenant, signal);
      const rules = item?.value.rules ?? [];
      const rule = rules.find((one) => one.used < one.uses && ruleAllows(one, requested));
      if (!rule) return undefined;
      const counted = rules.map((one) => (one.id === rule.id ? { ...one, used: one.used + 1 } : one));
      return { rule, spend: writeOp(tenant, item, counted) };
    },
  };
}
