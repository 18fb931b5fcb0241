/** IPs: each is granted an address, and published as a Service where it asks for one. */
import { rangeIps } from '#agent/model/network-selections.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { deleteOwned, ensureOwned } from '#kube/writes/owned-object.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import { addFinalizer, dropFinalizer, writeStatus } from '#kube/writes/write-if-changed.ts';
import { services } from '#shared/domain/core-kinds.ts';
import { keyOf, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkAnnotation, networkFinalizer, networkLabel, networkType } from '#shared/domain/network-keys.ts';
import { type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { RangeDeps } from '../../model/deps.ts';
import { grantedRange, networkOfType, owner } from '../cluster-ipam.ts';
import { buildEndpoints, buildService, endpointSlices, ipStatus, settleGrant } from './decide.ts';

const finalizer = networkFinalizer.ip;
const retryMs = 60_000;

export function createIpController(deps: RangeDeps): Controller {
  const { cluster, clock, state } = deps;
  const { api, caches, events } = cluster;
  const type = networkKinds.ips;
  const cache = rangeIps(caches);
  const networks = caches.cache(networkKinds.networks);
  const managed = { labelSelector: `${label.managed}=true` };
  const serviceCache = caches.cache(services, managed);
  const sliceCache = caches.cache(endpointSlices, managed);
  const reportWait = createReportWait(events, clock);

  /** `namespace/name` of the Network that the address comes from. */
  function networkKeyOf(ip: Ip): string | undefined {
    const { networkRef } = ip.spec;
    if (networkRef?.name) return `${networkRef.namespace || ip.metadata.namespace}/${networkRef.name}`;
    const { [networkLabel.networkName]: name, [networkLabel.networkNamespace]: namespace } = ip.metadata.labels ?? {};
    if (ip.status?.ip !== undefined && name !== undefined && namespace !== undefined) return `${namespace}/${name}`;
    const external = networkOfType(networks.list(), networkType.external);
    return external && keyOf(external);
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    await state.ready(signal);
    const found = cache.get(refOfKey(key));
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) {
      // The translations go first: an address must not be granted to another owner while gateways still send to this one.
      if (found?.metadata.finalizers?.includes(networkFinalizer.ipMapping)) return settled;
      state.ipam.releaseAddress(owner.ip(key));
      if (found) await dropFinalizer(api, type, found, finalizer, signal);
      return settled;
    }
    const network = networkKeyOf(found);
    const cidr = network && grantedRange(networks.get(refOfKey(network)));
    if (network === undefined || cidr === undefined)
      return reportWait(
        found,
        waiting(`the range of Network ${network ?? 'of type external-cidr, of which there is none'}`, retryMs),
      );
    const isPreinstalled = found.metadata.annotations?.[networkAnnotation.preinstalled] === 'true';
    let ip = isPreinstalled ? found : await addFinalizer(api, type, found, finalizer, signal);
    const before = ip.status?.ip;
    const grant = settleGrant(ip, state.ipam.grantAddress(owner.ip(key), owner.network(network), before));
    // What is written must lead back to what was granted, whenever this process ends: the labels come before the address.
    ip = await writeLabels(ip, network, signal);
    await writeStatus(api, type, ip, ipStatus(ip, grant, cidr, clock.now()), signal);
    if ('refused' in grant) {
      state.ipam.releaseAddress(owner.ip(key));
      return reportWait(ip, stalled(grant.refused.reason, grant.refused.message));
    }
    return reportWait(ip, await publish(ip, grant.granted, signal));
  }

  async function writeLabels(ip: Ip, network: string, signal: AbortSignal): Promise<Ip> {
    const { namespace = '', name } = refOfKey(network);
    const labels = { [networkLabel.networkName]: name, [networkLabel.networkNamespace]: namespace };
    if (Object.entries(labels).every(([key, value]) => ip.metadata.labels?.[key] === value)) return ip;
    return api.mergePatch(type, refOf(ip), { metadata: { labels } }, {}, signal);
  }

  async function publish(ip: Ip, address: string, signal: AbortSignal): Promise<Outcome> {
    const by = ownerOf(type, ip);
    const [service, slice] = [serviceCache.get(refOf(ip)), sliceCache.get(refOf(ip))];
    const wanted = buildService(ip, by);
    if (wanted === undefined) {
      await deleteOwned(api, endpointSlices, slice, ip, signal);
      await deleteOwned(api, services, service, ip, signal);
      return settled;
    }
    const current = service ?? (await api.get(services, refOf(ip), signal));
    if ((await ensureOwned(api, services, current, wanted, signal)) === 'foreign')
      return stalled('NameTaken', `Service ${ip.metadata.name} exists and has another owner; rename this IP`);
    await ensureOwned(api, endpointSlices, slice, buildEndpoints(ip, by, address), signal);
    return settled;
  }

  const isGoing = (ip: Ip): boolean =>
    ip.metadata.deletionTimestamp !== undefined || cache.get(refOf(ip)) === undefined;
  const waitingOnes = (): string[] =>
    cache
      .list()
      .filter(({ status }) => status?.ip === undefined)
      .map(keyOf);
  return createController(
    {
      name: 'ip',
      watches: [
        // One that goes makes room for those that were refused.
        watch(cache, (ip) => [keyOf(ip), ...(isGoing(ip) ? waitingOnes() : [])]),
        watch(serviceCache, (service) => [keyOf(service)]),
        watch(sliceCache, (slice) => [keyOf(slice)]),
        watch(networks, waitingOnes),
      ],
      reconcile,
    },
    deps,
  );
}
