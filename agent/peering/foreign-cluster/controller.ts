/** Keeps one ForeignCluster for each peer that anything here is about, with its summary, and removes it after the last thing is gone. */
import { gatewayDeployments } from '#agent/model/gateway-selections.ts';
import {
  peerOf,
  peerSecrets,
  tenantNamespaces,
  tenantsByCluster,
  virtualNodeNodes,
} from '#agent/model/peering-selections.ts';
import { isOriginal, isReplica } from '#agent/model/slice-roles.ts';
import { peerOfNamespace } from '#agent/model/tenant-namespaces.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import type { Cache, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { createUnlessThere, deleteObject, writeStatus } from '#kube/writes/write-if-changed.ts';
import { type KubeObject, refOf, type Secret } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import { settled } from '#shared/domain/outcome.ts';
import { peerings } from '#shared/schema/isthmus/peering.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { tokenOpener } from '../keys/token-opener.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { isControlPlane } from '../replication/sessions.ts';
import { createApiServerChecker } from './api-server-checker.ts';
import { credentialsEndMs } from './credentials.ts';
import { isAnything, type PeerFacts, peeringTypeOf, summarise } from './decide.ts';
import type { NetworkFacts } from './network.ts';
import { buildForeignCluster } from './object.ts';
import { ownerText } from './owner.ts';

/** From YAML or JSON, without parsing either: this is for people to read. */
const serverIn = (kubeconfig: string): string =>
  /["']?\bserver["']?\s*:\s*["']?([^"'\s,}]+)/.exec(kubeconfig)?.[1] ?? 'unknown';

const proxyIn = (kubeconfig: string): string | undefined =>
  /["']?\bproxy-url["']?\s*:\s*["']?([^"'\s,}]+)/.exec(kubeconfig)?.[1];

const kubeconfigIn = ({ data }: Secret): string => Buffer.from(data?.kubeconfig ?? '', 'base64').toString();

const oldest = <T extends KubeObject>(objects: readonly T[]): T | undefined =>
  [...objects].sort((a, b) =>
    (a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? -1 : 1,
  )[0];

export function createForeignClusterController(deps: PeeringDeps): Controller {
  const { cluster, clusterId, config, clock, log } = deps;
  const { api, caches } = cluster;
  const cache = caches.cache(foreignClusters);
  const tenantCache = tenantsByCluster(caches);
  const identityCache = caches.cache(identities);
  const nodeCache = caches.cache(virtualNodes);
  const kubeNodes = virtualNodeNodes(caches);
  const secretCache = peerSecrets(caches);
  /** Their presence counts, their content does not. */
  const others: readonly Cache<KubeObject>[] = [resourceSlices, namespaceMaps, renews].map(
    (type) => caches.cache(type as never) as unknown as Cache<KubeObject>,
  );
  const sliceCache = caches.cache(resourceSlices);
  const asks = caches.cache(peerings);
  const configurations = caches.cache(networkKinds.configurations);
  const servers = caches.cache(networkKinds.gatewayServers);
  const clients = caches.cache(networkKinds.gatewayClients);
  const connections = caches.cache(networkKinds.connections);
  const deployments = gatewayDeployments(caches);
  const namespaces = tenantNamespaces(caches);
  /** Labels of what a peer may write itself, copies and Secrets, count for nothing: there the namespace says whose it is. */
  const peerBehind = (object: KubeObject): string | undefined =>
    isReplica(object) || isControlPlane(object)
      ? peerOfNamespace(namespaces.list(), object.metadata.namespace)
      : peerOf(object);
  const peerKeys = (object: KubeObject): string[] => {
    const peer = peerBehind(object);
    return peer === undefined || peer === '' ? [] : [peer];
  };
  const credentialsFor = (peer: string): Secret[] =>
    secretCache
      .list()
      .filter((secret) => isControlPlane(secret) && peerOf(secret) === peer && peerBehind(secret) === peer);
  const checker = createApiServerChecker(
    deps,
    { secretCache, namespaces, credentialsFor },
    deps.connectPeer ?? createConnectCluster({ clock, log, openToken: tokenOpener(api, config.systemNamespace) }),
    (peer) => controller.enqueue(peer),
  );

  function factsOf(peer: string): PeerFacts {
    const isPeers = (object: KubeObject): boolean => peerOf(object) === peer;
    const held = credentialsFor(peer);
    const declared = held.find((secret) => !secret.metadata.ownerReferences?.length);
    return {
      tenant: tenantCache.byIndex('cluster', peer)[0],
      identity: identityCache.list().find(({ spec }) => spec.clusterID === peer && spec.type === 'ControlPlane'),
      declaredServer: declared === undefined ? undefined : serverIn(kubeconfigIn(declared)),
      declaredProxy: declared && proxyIn(kubeconfigIn(declared)),
      virtualNodes: nodeCache.list().filter(({ spec }) => spec.clusterID === peer),
      nodes: kubeNodes.list().filter(isPeers),
      network: networkOf(isPeers),
      health: checker.health(peer),
      credentialsEndMs: held[0] && credentialsEndMs(kubeconfigIn(held[0])),
      nowMs: clock.now(),
    };
  }

  /** Several of one kind: the older counts, as for the gateways themselves. */
  function networkOf(isPeers: (object: KubeObject) => boolean): NetworkFacts {
    const first = <T extends KubeObject>(kind: Cache<T>): T | undefined => oldest(kind.list().filter(isPeers));
    const [server, client] = [first(servers), first(clients)];
    const gateway = server ?? client;
    const ref =
      gateway === undefined
        ? undefined
        : { namespace: gateway.metadata.namespace ?? '', name: networkName.gateway(gateway.metadata.name) };
    return {
      configuration: first(configurations),
      server,
      client,
      deployment: ref === undefined ? undefined : deployments.get(ref),
      connection: (ref === undefined ? undefined : connections.get(ref)) ?? first(connections),
    };
  }

  const countOthers = (peer: string): number =>
    others.reduce((sum, kind) => sum + kind.list().filter((object) => peerBehind(object) === peer).length, 0) +
    credentialsFor(peer).length;

  const create = (peer: string, signal: AbortSignal): Promise<void> =>
    createUnlessThere(api, foreignClusters, buildForeignCluster(peer), signal);

  /** Two summaries of one peer: the older counts. */
  const foreignOf = (peer: string): ForeignCluster | undefined =>
    oldest(cache.list().filter(({ spec }) => spec.clusterID === peer));

  async function annotate(foreign: ForeignCluster, facts: PeerFacts, signal: AbortSignal): Promise<void> {
    const peer = foreign.spec.clusterID;
    const { tenant, identity, declaredServer, network } = facts;
    const links = [network.configuration, network.server, network.client].filter((object) => object !== undefined);
    const originals = sliceCache.list().filter((slice) => isOriginal(slice) && peerOf(slice) === peer);
    const others = [...links, ...originals];
    const owner = ownerText({
      peer,
      tenant,
      identity,
      isDeclared: declaredServer !== undefined,
      others,
      asks: asks.list(),
    });
    const wanted = { [isthmusAnnotation.owner]: owner, [isthmusAnnotation.peeringType]: peeringTypeOf(facts) };
    const stale = Object.entries(wanted).filter(([key, text]) => (foreign.metadata.annotations?.[key] ?? '') !== text);
    if (stale.length === 0) return;
    const annotations = Object.fromEntries(stale.map(([key, text]) => [key, text === '' ? null : text]));
    const patch = { metadata: { annotations } };
    await api.mergePatch(foreignClusters, refOf(foreign), patch, {}, signal);
  }

  const controller = createController(
    {
      name: 'foreign-cluster',
      watches: [
        watch(cache, ({ spec }) => [spec.clusterID]),
        watch(tenantCache, ({ spec }) => [spec.clusterID]),
        watch(identityCache, ({ spec }) => [spec.clusterID]),
        watch(nodeCache, ({ spec }) => [spec.clusterID]),
        watch(kubeNodes, peerKeys),
        watch(namespaces, peerKeys),
        watch(secretCache, (secret) => (isControlPlane(secret) ? peerKeys(secret) : [])),
        ...others.map((kind) => watch(kind, peerKeys)),
        watch(configurations, peerKeys),
        watch(servers, peerKeys),
        watch(clients, peerKeys),
        watch(connections, peerKeys),
        watch(deployments, peerKeys),
        watch(asks, ({ spec }) => [spec.provider]),
      ],
      async reconcile(peer, signal) {
        const foreign = foreignOf(peer);
        const facts = factsOf(peer);
        if (peer === clusterId || !isAnything(facts, countOthers(peer))) {
          if (foreign !== undefined && foreign.metadata.deletionTimestamp === undefined)
            await deleteObject(api, foreignClusters, foreign, signal);
          return settled;
        }
        if (foreign === undefined) await create(peer, signal);
        else if (foreign.metadata.deletionTimestamp === undefined) {
          await writeStatus(api, foreignClusters, foreign, summarise(foreign, facts), signal);
          await annotate(foreign, facts, signal);
        }
        return settled;
      },
    },
    { clock, log },
  );

  return {
    ...controller,
    async run(signal) {
      await Promise.all([controller.run(signal), checker.run(signal)]);
    },
  };
}
