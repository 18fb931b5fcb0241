/** What sweeps look at lies outside the partitions of its tenant, beside those of all others: it is found by the items that it was planned with. */
import type { DueDelivery } from '../model/due-delivery.ts';
import type { LookRecord } from '../model/peering-records.ts';
import type { Item, Key, Op, Store } from '../ports/store.ts';
import { dueId, type RequestRecord } from '../requests/request.ts';
import { key, partition } from '../store/keys.ts';

type Planner = Pick<Item, 'pk' | 'sk' | 'value'>;

/** Removes what was planned for an item of a tenant, if anything was. */
export async function dropPlanned(store: Store, tenant: string, item: Planner, signal?: AbortSignal): Promise<Op[]> {
  const planned = plannedFor(tenant, item);
  const due = planned && (await store.get(planned.pk, planned.sk, signal));
  return due ? [{ op: 'delete', pk: due.pk, sk: due.sk, ifVersion: due.version }] : [];
}

function plannedFor(tenant: string, { pk, sk, value }: Planner): Key | undefined {
  switch (pk) {
    case partition.looks(tenant):
      return key.due(tenant, (value as LookRecord).at, sk);
    case partition.inbox(tenant):
      return key.due(tenant, (value as RequestRecord).expiresAt, dueId(sk));
    case partition.deliveriesDue(tenant): {
      const { receiver, event } = value as DueDelivery;
      return key.receiverDue(tenant, receiver, Number(sk.split('/')[1]), event);
    }
    default:
      return undefined;
  }
}
