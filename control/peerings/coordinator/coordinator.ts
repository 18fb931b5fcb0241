/**
 * The driver of the state machine, level-triggered: after any event it reads everything about a peering, lets `reconcilePeering` decide, and
 * writes the answer in one transaction that fails if anything it was decided on has changed. Missing, repeated and reordered triggers change
 * nothing but the delay.
 */
import { sameJson } from '#shared/domain/json-equality.ts';
import type { Coordinator } from '../../model/coordinator.ts';
import type { ControlDeps } from '../../model/deps.ts';
import type { PairRecord, PeeringRecord } from '../../model/peering-records.ts';
import { withPrefix } from '../../ports/store.ts';
import { everyItem } from '../../store/every-item.ts';
import { key, partition, prefix } from '../../store/keys.ts';
import { untilWritten } from '../../store/until-written.ts';
import { hasEnded } from '../core/ended.ts';
import { reconcilePeering } from '../state-machine/decide.ts';
import { loadPeering } from './load.ts';
import { planWrite } from './write.ts';

export type CoordinatorDeps = Pick<ControlDeps, 'store' | 'channel' | 'clock' | 'ids' | 'log'> & {
  /** A look was planned for that time: the sweeper may have to wake up earlier. */
  readonly onDue?: (at: number) => void;
};

export function createCoordinator(deps: CoordinatorDeps): Coordinator {
  const { store, channel, clock, log } = deps;

  async function lookOnce(tenant: string, id: string, signal?: AbortSignal): Promise<boolean> {
    const loaded = await loadPeering(store, tenant, id, signal);
    if (!loaded) return false;
    const { spec, state } = loaded.item.value;
    const result = reconcilePeering({
      spec,
      state,
      consumer: loaded.consumer.input,
      provider: loaded.provider.input,
      opposite: loaded.opposite,
      ...(loaded.oppositeLink ? { oppositeLink: loaded.oppositeLink } : {}),
      ...(spec.across ? {} : { tenant }),
      ...(loaded.invitation?.value.revokedAt === undefined ? {} : { withdrawn: true }),
      now: clock.now(),
    });
    const { ops, events, rings, dueAt } = planWrite(deps, loaded, result);
    if (ops.length === 0) return true;
    await store.transact(ops, events, signal);
    const facts = { tenant, peering: id, ...(spec.requestId !== undefined && { requestId: spec.requestId }) };
    if (result.state.phase !== state.phase) {
      log.info('peering moved', { ...facts, from: state.phase, to: result.state.phase });
    }
    for (const { type, status, reason, side } of result.state.conditions) {
      if (state.conditions.some((before) => before.type === type && before.status === status)) continue;
      log.info('condition of a peering changed', { ...facts, condition: type, status, reason, side });
    }
    for (const { revision, ...cluster } of rings) channel.ring(cluster, revision);
    if (dueAt !== undefined) deps.onDue?.(dueAt);
    const layout = result.state.link?.layout;
    if (layout && loaded.oppositeId !== undefined && !sameJson(state.link?.layout, layout)) {
      // Both peerings of a pair hold the same: the other one is to take this over, or to have its way.
      await look(tenant, loaded.oppositeId, signal);
    }
    return true;
  }

  const look = (tenant: string, id: string, signal?: AbortSignal): Promise<boolean> =>
    untilWritten(() => lookOnce(tenant, id, signal), signal);

  return {
    look,

    async lookAtCluster({ tenant, clusterId }, signal) {
      const query = { partition: partition.cluster(tenant, clusterId), ...withPrefix(prefix.peeringsOfCluster) };
      for await (const { value } of everyItem<PairRecord>(store, query, signal)) await look(tenant, value.id, signal);
    },

    async isLive(tenant, id, signal) {
      const { pk, sk } = key.peering(tenant, id);
      const item = await store.get<PeeringRecord>(pk, sk, signal);
      return item !== undefined && !hasEnded(item.value);
    },
  };
}
