/** Labels of peerings. Across tenants each has its own: they are in its copy, never in what both share. */
import { type Caller, mustHave } from '../../access/caller.ts';
import { replaceLabels } from '../../labels/labels.ts';
import type { ControlDeps } from '../../model/deps.ts';
import type { LabelChange } from '../../model/labels.ts';
import type { PeeringRecord } from '../../model/peering-records.ts';
import { key } from '../../store/keys.ts';

export async function labelPeering(
  deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>,
  caller: Caller,
  id: string,
  change: LabelChange,
  signal?: AbortSignal,
): Promise<void> {
  mustHave(caller, 'peerings:write');
  await replaceLabels<PeeringRecord>(
    deps,
    caller,
    {
      kind: 'peering',
      id,
      at: key.peering(caller.tenant, id),
      of: ({ spec }) => spec.labels,
      with: ({ spec, state }, labels) => ({ spec: { ...spec, labels }, state }),
      about: ({ spec }) => ({ consumer: spec.consumer, provider: spec.provider }),
    },
    change,
    signal,
  );
}
