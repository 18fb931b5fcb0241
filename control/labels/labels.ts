/** Labels: a tenant's own words about its objects, for its own lists only. */
import { sameJson } from '#shared/domain/json-equality.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import { checkLabels } from '../input/labels.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { LabelChange, Labels } from '../model/labels.ts';
import type { Key } from '../ports/store.ts';
import type { Labelled as LabelledKind } from '../store/keys.ts';
import { untilWritten } from '../store/until-written.ts';
import { labelOps } from './label-index.ts';

/** A record of the caller's own tenant, and where the labels are in it. */
interface Labelled<T> {
  readonly kind: LabelledKind;
  readonly id: string;
  readonly at: Key;
  readonly of: (value: T) => Labels | undefined;
  readonly with: (value: T, labels: Labels) => T;
  /** What the event says besides the labels. */
  readonly about?: (value: T) => Readonly<Record<string, unknown>>;
}

/** Replaces all labels. Agents report into the same records, hence it may take more than one attempt. */
export async function replaceLabels<T>(
  deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>,
  caller: Caller,
  labelled: Labelled<T>,
  change: LabelChange,
  signal?: AbortSignal,
): Promise<void> {
  const { kind, id, at } = labelled;
  const labels = checkLabels(change.labels);
  await untilWritten(async () => {
    const item = await deps.store.get<T>(at.pk, at.sk, signal);
    if (!item) throw new AppError('not_found', `there is no ${kind} ${JSON.stringify(id)}`, { detail: { [kind]: id } });
    const { value, version, expiresAt } = item;
    if (change.ifVersion !== undefined && change.ifVersion !== version) {
      throw new AppError('precondition_failed', `${kind} ${id} has version ${version}, not ${change.ifVersion}`, {
        detail: { expected: change.ifVersion, found: version },
      });
    }
    const before = labelled.of(value) ?? {};
    if (sameJson(before, labels)) return;
    const subject = `${kind}/${id}`;
    const next = { ...at, value: labelled.with(value, labels), ifVersion: version };
    await deps.store.transact(
      [
        { op: 'update', ...next, ...(expiresAt === undefined ? {} : { expiresAt }) },
        ...labelOps({ tenant: caller.tenant, kind, id }, before, labels, expiresAt),
        ...auditOps(deps, caller, { action: `${kind}.label`, subject, before, after: labels }),
      ],
      [eventOf(deps, caller.tenant, `${kind}.labels-changed`, subject, { ...labelled.about?.(value), labels })],
      signal,
    );
  }, signal);
}
