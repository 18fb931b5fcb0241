/**
 * Pods that may run on virtual nodes only, created before any provider has their namespace, wait behind a scheduling gate: no scheduler
 * places them where they could not start, and no autoscaler buys machines for them. Which pods wait, why, and until when. Pure.
 */
import type { Pod } from '#shared/domain/kube-object.ts';
import { isthmusLabel, offloadingGate } from '#shared/domain/liqo-keys.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import type { JsonOperation } from '../pods/mutable-spec.ts';

/** Why pods of the namespace wait, for people; undefined: they need not (or no longer). */
export function waitsFor(offloading: NamespaceOffloading | undefined): string | undefined {
  if (!offloading || offloading.metadata.deletionTimestamp) return undefined;
  if (offloading.spec.podOffloadingStrategy !== 'Remote') return undefined;
  const byCluster = Object.values(offloading.status?.remoteNamespacesConditions ?? {});
  const is = (conditions: (typeof byCluster)[number], type: string) => conditions.find((c) => c.type === type);
  const required = byCluster.filter((conditions) => is(conditions, 'OffloadingRequired')?.status === 'True');
  if (required.some((conditions) => is(conditions, 'Ready')?.status === 'True')) return undefined;
  const { namespace } = offloading.metadata;
  if (!offloading.status) return `the offloading of namespace ${namespace} has just begun`;
  if (required.length === 0) {
    return `namespace ${namespace} is to be offloaded, but no virtual node matches its clusterSelector`;
  }
  const why = required.map((conditions) => is(conditions, 'Ready')?.message).find((message) => message !== undefined);
  return `no provider has namespace ${namespace} yet: ${why ?? 'none has answered'}`;
}

export const isGated = (pod: Pod): boolean =>
  pod.spec?.schedulingGates?.some(({ name }) => name === offloadingGate) ?? false;

/** Takes our gate and our mark off and leaves those of others. Empty: there is neither. */
export function releasePatch(pod: Pod): JsonOperation[] {
  const gates = pod.spec?.schedulingGates ?? [];
  const index = gates.findIndex(({ name }) => name === offloadingGate);
  const gate: JsonOperation[] =
    index < 0
      ? []
      : [
          { op: 'test', path: `/spec/schedulingGates/${index}/name`, value: offloadingGate },
          { op: 'remove', path: `/spec/schedulingGates/${index}` },
        ];
  const mark: JsonOperation[] =
    pod.metadata.labels?.[isthmusLabel.gated] === undefined
      ? []
      : [{ op: 'remove', path: `/metadata/labels/${isthmusLabel.gated.replace('/', '~1')}` }];
  if (gate.length + mark.length === 0) return [];
  return [{ op: 'test', path: '/metadata/uid', value: pod.metadata.uid }, ...gate, ...mark];
}
