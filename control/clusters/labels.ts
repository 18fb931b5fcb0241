/** Labels of clusters: the tenant's own words, for its lists and for nobody else. What others see of a cluster is in its directory entry. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOp, eventOf } from '../audit/record.ts';
import type { ControlDeps } from '../deps.ts';
import { checkLabels } from '../directory/entry.ts';
import { key } from '../keys.ts';
import { sameJson } from '../peerings/canonical.ts';
import { untilWritten } from '../peerings/coordinate.ts';
import type { ClusterRecord } from './cluster.ts';

export type Labels = Readonly<Record<string, string>>;

/** Replaces all labels of a cluster. Agents report into the same record, hence it may take more than one attempt. */
export async function labelCluster(
  deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>,
  caller: Caller,
  id: string,
  change: { readonly labels: Labels; readonly ifVersion?: number | undefined },
  signal?: AbortSignal,
): Promise<void> {
  mustHave(caller, 'clusters:label');
  const { tenant } = caller;
  const labels = checkLabels(change.labels);
  const at = key.cluster(tenant, id);
  await untilWritten(async () => {
    const item = await deps.store.get<ClusterRecord>(at.pk, at.sk, signal);
    if (!item)
      throw new AppError('not_found', `there is no cluster ${JSON.stringify(id)}`, { detail: { cluster: id } });
    const { value, version } = item;
    if (change.ifVersion !== undefined && change.ifVersion !== version) {
      throw new AppError('precondition_failed', `cluster ${id} has version ${version}, not ${change.ifVersion}`, {
        detail: { expected: change.ifVersion, found: version },
      });
    }
    const before = value.labels ?? {};
    if (sameJson(before, labels)) return;
    const subject = `cluster/${id}`;
    await deps.store.transact(
      [
        { op: 'update', ...at, value: { ...value, labels } satisfies ClusterRecord, ifVersion: version },
        auditOp(deps, caller, { action: 'cluster.label', subject, before, after: labels }),
      ],
      [eventOf(deps, tenant, 'cluster.labels-changed', subject, { labels })],
      signal,
    );
  }, signal);
}
