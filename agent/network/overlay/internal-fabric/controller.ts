/** InternalFabrics: a gateway gets its overlay address and tunnel id once a pod of it is active and the peer's ranges are granted. */
import { randomBytes } from 'node:crypto';
import { peerOf } from '#agent/model/peering-selections.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Cache, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { deleteOwned, ensureOwned } from '#kube/writes/owned-object.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import { type KubeObject, keyOf, type ResourceType, refOfKey } from '#shared/domain/kube-object.ts';
import { isthmusNetworkAnnotation, networkName, networkType } from '#shared/domain/network-keys.ts';
import { again, type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { rivalOf } from '../../gateway/decide.ts';
import type { RangeDeps } from '../../model/deps.ts';
import { grantedRange, networkOfType, owner } from '../../ranges/cluster-ipam.ts';
import { buildInternalFabric, isConfigured, pickTunnelId } from './decide.ts';

const retryMs = 30_000;
type Gateway = GatewayServer | GatewayClient;

export function createInternalFabricController(deps: RangeDeps): Controller {
  const { cluster, clock, state } = deps;
  const { api, caches, events } = cluster;
  const type = networkKinds.internalFabrics;
  const cache = caches.cache(type);
  const roles = [networkKinds.gatewayServers, networkKinds.gatewayClients] as readonly ResourceType<Gateway>[];
  const gateways: readonly Cache<Gateway>[] = roles.map((role) => caches.cache(role));
  const configurations = caches.cache(networkKinds.configurations);
  const connections = caches.cache(networkKinds.connections);
  const networks = caches.cache(networkKinds.networks);
  const reportWait = createReportWait(events, clock);

  function free(key: string): void {
    state.ipam.releaseAddress(owner.fabric(key));
    for (const [id, holder] of state.tunnelIds) if (holder === key) state.tunnelIds.delete(id);
  }

  function tunnelIdOf(key: string, known: string | undefined): number {
    const before = Number(known);
    const mine = [...state.tunnelIds].find(([, holder]) => holder === key)?.[0];
    if (mine !== undefined) return mine;
    const isUsable = before > 0 && before < 2 ** 24 && !state.tunnelIds.has(before);
    const id = isUsable
      ? before
      : pickTunnelId(
          (one) => state.tunnelIds.has(one),
          () => randomBytes(3),
        );
    state.tunnelIds.set(id, key);
    return id;
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    await state.ready(signal);
    const ref = refOfKey(key);
    const known = cache.get(ref);
    const all = gateways.flatMap((one) => one.list());
    const here = all.filter((one) => keyOf(one) === key && !one.metadata.deletionTimestamp);
    const gateway = here.find((one) => rivalOf(one, peerOf(one) ?? '', all) === undefined);
    if (gateway === undefined) {
      // The InternalFabric is collected with its owner; its address stays reserved until then.
      if (known === undefined) free(key);
      else for (const one of here) await deleteOwned(api, type, known, one, signal);
      return settled;
    }
    const peer = peerOf(gateway);
    const gatewayIp = gateway.status?.internalEndpoint?.ip;
    const configuration = configurations
      .list()
      .find((one) => one.metadata.namespace === ref.namespace && peerOf(one) === peer);
    if (peer === undefined) return settled;
    if (gatewayIp === undefined) return reportWait(gateway, waiting('an active gateway pod', retryMs));
    if (configuration === undefined || !isConfigured(configuration))
      return reportWait(gateway, waiting(`the ranges of ${peer}: see its Configuration`, retryMs));
    const internal = networkOfType(networks.list(), networkType.internal);
    if (internal === undefined || grantedRange(internal) === undefined)
      return reportWait(gateway, waiting('the Network of type internal-cidr', retryMs));
    const from = owner.network(keyOf(internal));
    const grant = state.ipam.grantAddress(owner.fabric(key), from, known?.spec.interface.gateway.ip);
    if ('refused' in grant) {
      const { reason, message } = grant.refused;
      if (reason === 'NetworkNotGranted') return reportWait(gateway, waiting(message, retryMs));
      reportWait(gateway, stalled(reason, message));
      return again(retryMs);
    }
    const role = roles.find(({ kind }) => kind === gateway.kind) as ResourceType<Gateway>;
    const wanted = buildInternalFabric({
      gateway,
      peer,
      owner: ownerOf(role, gateway),
      configuration,
      connection: connections.get({ ...ref, name: networkName.gateway(ref.name) }),
      gatewayIp,
      overlayAddress: grant.granted,
      tunnelId: tunnelIdOf(key, known?.metadata.annotations?.[isthmusNetworkAnnotation.vni]),
    });
    const done = await ensureOwned(api, type, known, wanted, signal);
    if (done === 'foreign')
      return reportWait(gateway, stalled('NameTaken', `InternalFabric ${key} has another owner; remove it`));
    reportWait(gateway, settled);
    return done === 'replaced' ? again(1_000) : settled;
  }

  const ofPeer = ({ metadata, ...object }: KubeObject): string[] =>
    gateways
      .flatMap((one) => one.list())
      .filter((one) => one.metadata.namespace === metadata.namespace && peerOf(one) === peerOf({ metadata, ...object }))
      .map(keyOf);
  return createController(
    {
      name: 'internal-fabric',
      watches: [
        ...gateways.map((one) => watch(one, (gateway) => [keyOf(gateway), ...ofPeer(gateway)])),
        watch(cache, (fabric) => [keyOf(fabric)]),
        watch(configurations, ofPeer),
        watch(connections, ofPeer),
        watch(networks, ({ metadata, ...one }) =>
          metadata.labels && Object.values(metadata.labels).includes(networkType.internal)
            ? gateways.flatMap((all) => all.list()).map(keyOf)
            : ofPeer({ metadata, ...one }),
        ),
      ],
      reconcile,
    },
    deps,
  );
}
