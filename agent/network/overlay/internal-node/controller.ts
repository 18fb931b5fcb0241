/** InternalNodes: every node that is not virtual has an overlay address, and an IP by which peers see it. Gone with the node. */
import { rangeIps, rangeNodes } from '#agent/model/network-selections.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { covers, deleteObject } from '#kube/writes/write-if-changed.ts';
import { keyOf, type Node } from '#shared/domain/kube-object.ts';
import { fieldManager, label } from '#shared/domain/liqo-keys.ts';
import { networkName, networkType } from '#shared/domain/network-keys.ts';
import { again, type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { RangeDeps } from '../../model/deps.ts';
import { grantedRange, networkOfType, owner } from '../../ranges/cluster-ipam.ts';
import { buildInternalNode, buildNodeIp, collisionMessage, nodeOfIp } from './decide.ts';

const retryMs = 30_000;

export function createInternalNodeController(deps: RangeDeps): Controller {
  const { cluster, clock, state, systemNamespace } = deps;
  const { api, caches, events } = cluster;
  const { internalNodes, ips } = networkKinds;
  const nodeCache = rangeNodes(caches);
  const cache = caches.cache(internalNodes);
  const ipCache = rangeIps(caches);
  const networks = caches.cache(networkKinds.networks);
  const reportWait = createReportWait(events, clock);
  const told = new Map<string, string>();

  async function reconcile(name: string, signal: AbortSignal): Promise<Outcome> {
    await state.ready(signal);
    const known = cache.get({ name });
    const ip = ipCache.get({ namespace: systemNamespace, name: networkName.nodeIp(name) });
    const ownIp = ip?.metadata.labels?.[label.managed] === 'true' ? ip : undefined;
    const node = nodeCache.get({ name });
    reportCollisions(name, node);
    if (node === undefined) {
      if (ownIp && !ownIp.metadata.deletionTimestamp) await deleteObject(api, ips, ownIp, signal);
      if (known && !known.metadata.deletionTimestamp) await deleteObject(api, internalNodes, known, signal);
      // The address is released only once no object shows it any more.
      if (known === undefined) state.ipam.releaseAddress(owner.node(name));
      return settled;
    }
    if (known?.metadata.deletionTimestamp || ownIp?.metadata.deletionTimestamp) return again(1_000);
    const internal = networkOfType(networks.list(), networkType.internal);
    if (internal === undefined || grantedRange(internal) === undefined)
      return reportWait(node, waiting('the Network of type internal-cidr', retryMs));
    const grant = state.ipam.grantAddress(
      owner.node(name),
      owner.network(keyOf(internal)),
      known?.spec.interface.node.ip,
    );
    if ('refused' in grant) {
      const { reason, message } = grant.refused;
      if (reason === 'NetworkNotGranted') return reportWait(node, waiting(message, retryMs));
      reportWait(node, stalled(reason, message));
      // Room is made by objects of several kinds: look again.
      return again(retryMs);
    }
    const wanted = buildInternalNode(name, grant.granted);
    if (!covers(known, wanted)) await api.apply(internalNodes, wanted, { fieldManager: fieldManager.agent }, signal);
    const wantedIp = buildNodeIp(name, systemNamespace, grant.granted);
    if (ownIp !== undefined && ownIp.spec.ip !== grant.granted) {
      await deleteObject(api, ips, ownIp, signal);
      return again(1_000);
    }
    if (ip === undefined) await api.apply(ips, wantedIp, { fieldManager: fieldManager.agent }, signal);
    if (ip !== undefined && ownIp === undefined && ip.spec.ip !== grant.granted) {
      const place = `${systemNamespace}/${ip.metadata.name}`;
      const why = `IP ${place} was not made by this agent, and is for ${ip.spec.ip}: delete it, or peers do not see what this node sends`;
      return reportWait(node, stalled('NameTaken', why));
    }
    return reportWait(node, settled);
  }

  /** Emits one Event per node and text. The ranges of a node are not requested from the IPAM, so a collision can only be reported. */
  function reportCollisions(name: string, node: Node | undefined): void {
    const text =
      node &&
      collisionMessage(name, [
        ...state.ipam.collisionsOf(owner.host(name)),
        ...state.ipam.collisionsOf(owner.nodeNetworks(name)),
      ]);
    if (node !== undefined && text !== undefined && told.get(name) !== text)
      events.emit(node, 'Warning', 'RangeTaken', text);
    if (text === undefined) told.delete(name);
    else told.set(name, text);
  }

  return createController(
    {
      name: 'internal-node',
      watches: [
        watch(nodeCache, ({ metadata }) => [metadata.name]),
        watch(cache, ({ metadata }) => [metadata.name]),
        watch(ipCache, ({ metadata }) =>
          metadata.namespace === systemNamespace ? [nodeOfIp(metadata.name)].filter((one) => one !== undefined) : [],
        ),
        watch(networks, () => nodeCache.list().map(({ metadata }) => metadata.name)),
      ],
      reconcile,
    },
    deps,
  );
}
