/** Labels of clusters. What others see of a cluster is in its directory entry. */
import { type Caller, mustHave } from '../access/caller.ts';
import { replaceLabels } from '../labels/labels.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { LabelChange } from '../model/labels.ts';
import { key } from '../store/keys.ts';

export async function labelCluster(
  deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>,
  caller: Caller,
  id: string,
  change: LabelChange,
  signal?: AbortSignal,
): Promise<void> {
  mustHave(caller, 'clusters:label');
  await replaceLabels<ClusterRecord>(
    deps,
    caller,
    {
      kind: 'cluster',
      id,
      at: key.cluster(caller.tenant, id),
      of: ({ labels }) => labels,
      with: (value, labels) => ({ ...value, labels }),
    },
    change,
    signal,
  );
}
