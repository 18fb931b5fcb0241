/** Networks: each is granted a range, which it keeps until it is deleted. */
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { addFinalizer, dropFinalizer, writeStatus } from '#kube/writes/write-if-changed.ts';
import { keyOf, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { networkAnnotation, networkFinalizer } from '#shared/domain/network-keys.ts';
import { type Outcome, settled, stalled } from '#shared/domain/outcome.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { RangeDeps } from '../../model/deps.ts';
import { owner, requestOf } from '../cluster-ipam.ts';
import { networkStatus } from './decide.ts';

const finalizer = networkFinalizer.network;

export function createNetworkController(deps: RangeDeps): Controller {
  const { cluster, clock, state } = deps;
  const { api, caches, events } = cluster;
  const type = networkKinds.networks;
  const cache = caches.cache(type);
  const reportWait = createReportWait(events, clock);
  /** UID of the object that holds the grant: one recreated under its name starts from nothing. */
  const holders = new Map<string, string | undefined>();

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    await state.ready(signal);
    const found = cache.get(refOfKey(key));
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) {
      state.ipam.releasePrefix(owner.network(key));
      holders.delete(key);
      if (found) await dropFinalizer(api, type, found, finalizer, signal);
      return settled;
    }
    const { uid } = found.metadata;
    if (holders.has(key) && holders.get(key) !== uid) state.ipam.releasePrefix(owner.network(key));
    holders.set(key, uid);
    const isPreinstalled = found.metadata.annotations?.[networkAnnotation.preinstalled] === 'true';
    const network = isPreinstalled ? found : await addFinalizer(api, type, found, finalizer, signal);
    const grant = state.ipam.grantPrefix(requestOf(network));
    await writeStatus(api, type, network, networkStatus(network, grant, clock.now()), signal);
    if ('refused' in grant) return reportWait(network, stalled(grant.refused.reason, grant.refused.message));
    return reportWait(network, settled);
  }

  const isGoing = (one: Network): boolean =>
    one.metadata.deletionTimestamp !== undefined || cache.get(refOf(one)) === undefined;
  const refused = (): string[] =>
    cache
      .list()
      .filter(({ status }) => status?.cidr === undefined)
      .map(keyOf);
  return createController(
    {
      name: 'network',
      // One that goes makes room for those that were refused.
      watches: [watch(cache, (one) => [keyOf(one), ...(isGoing(one) ? refused() : [])])],
      workers: 1,
      reconcile,
    },
    deps,
  );
}
