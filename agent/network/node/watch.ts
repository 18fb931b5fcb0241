/** The caches of a node process: everything that a node has to know, each object pruned to what is read of it. */
import type { Cache, Cluster } from '#kube/model/types.ts';
import { abortScope } from '#shared/async/abort-scope.ts';
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Node, Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { gatewayComponent, networkAnnotation, networkLabel } from '#shared/domain/network-keys.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { type NodeAgentObjects, noObjects, type PodAddress } from '../objects/objects.ts';

export interface NodeAgentWatch {
  /** As of now, the same object until something changes; complete once `synced` has resolved. */
  objects(): NodeAgentObjects;
  synced(signal: AbortSignal): Promise<void>;
  /** Calls back on each change that a reader can see; returns what ends that. */
  onChange(listener: (what: keyof NodeAgentObjects) => void): () => void;
  /** Pods of the whole cluster are watched only where a gateway has to route to them. */
  needPods(needed: boolean): void;
}

type Slim<T extends KubeObject> = (object: T) => T;

const slimNode: Slim<Node> = ({ apiVersion, kind, metadata, spec, status }) => {
  const { name, uid, resourceVersion, labels } = metadata;
  const { podCIDR, podCIDRs } = spec ?? {};
  const bootID = status?.nodeInfo?.bootID;
  return {
    apiVersion,
    kind,
    metadata: { name, ...defined({ uid, resourceVersion, labels: only(labels, ['liqo.io/type']) }) },
    spec: defined({ podCIDR, podCIDRs }),
    status: {
      ...defined({ addresses: status?.addresses }),
      ...(bootID ? { nodeInfo: { bootID } as NonNullable<NonNullable<Node['status']>['nodeInfo']> } : {}),
    },
  };
};

const slimGatewayPod: Slim<Pod> = ({ apiVersion, kind, metadata, spec, status }) => {
  const { annotations: _, ownerReferences: __, ...rest } = metadata;
  return {
    apiVersion,
    kind,
    metadata: rest,
    spec: { containers: [], ...defined({ nodeName: spec?.nodeName }) },
    status: defined({ podIP: status?.podIP, phase: status?.phase }),
  };
};

/** Pods of the cluster that have an address here: one event each while they come up. What runs at a peer is no place of ours. */
const placedPods = {
  labelSelector: `${label.shadowPod}!=true`,
  fieldSelector: 'status.podIP!=,status.phase!=Failed,status.phase!=Succeeded',
} as const;

/** Where its address is. Nothing else of 5,000 pods is kept. */
const slimPod: Slim<Pod> = ({ apiVersion, kind, metadata, spec, status }) => {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    apiVersion,
    kind,
    metadata: { name, ...defined({ namespace, uid, resourceVersion }) },
    spec: { containers: [], ...defined({ nodeName: spec?.nodeName }) },
    status: spec?.hostNetwork === true ? {} : defined({ podIP: status?.podIP }),
  };
};

/** An address and where it leads: there may be one per offloaded pod. */
const slimIp: Slim<Ip> = ({ apiVersion, kind, metadata, spec, status }) => {
  const { name, namespace, uid, resourceVersion, labels, annotations, deletionTimestamp } = metadata;
  const kept = only(labels, [networkLabel.hostUnreachable]);
  const noted = only(annotations, [networkAnnotation.servedBy]);
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...defined({ namespace, uid, resourceVersion, deletionTimestamp }),
      ...(Object.keys(kept).length === 0 ? {} : { labels: kept }),
      ...(Object.keys(noted).length === 0 ? {} : { annotations: noted }),
    },
    spec: { ip: spec.ip, ...defined({ masquerade: spec.masquerade }) },
    ...(status?.ip === undefined ? {} : { status: { ip: status.ip } }),
  };
};

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> };
const defined = <T extends object>(fields: T): Present<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<T>;
const only = (labels: Record<string, string> | undefined, keys: readonly string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => keys.includes(key)));

export function watchNodeAgentObjects({ caches }: Pick<Cluster, 'caches'>, signal: AbortSignal): NodeAgentWatch {
  const listeners = new Set<(what: keyof NodeAgentObjects) => void>();
  const tell = (what: keyof NodeAgentObjects): void => {
    for (const listener of listeners) listener(what);
  };
  const all = {
    nodes: caches.cache(nodes, { transform: slimNode }),
    internalNodes: caches.cache(networkKinds.internalNodes),
    internalFabrics: caches.cache(networkKinds.internalFabrics),
    configurations: caches.cache(networkKinds.configurations),
    gatewayServers: caches.cache(networkKinds.gatewayServers),
    gatewayClients: caches.cache(networkKinds.gatewayClients),
    publicKeys: caches.cache(networkKinds.publicKeys),
    networks: caches.cache(networkKinds.networks),
    ips: caches.cache(networkKinds.ips, { transform: slimIp }),
    firewalls: caches.cache(networkKinds.firewallConfigurations),
    routes: caches.cache(networkKinds.routeConfigurations),
    gatewayPods: caches.cache(pods, {
      labelSelector: `${networkLabel.component}=${gatewayComponent}`,
      transform: slimGatewayPod,
    }),
  };
  for (const [what, cache] of Object.entries(all) as [keyof typeof all, Cache<KubeObject>][])
    cache.subscribe(({ before, after }) => {
      if (seen(what, before) !== seen(what, after)) tell(what);
    });

  const caching = Object.entries(all) as readonly [string, Cache<KubeObject>][];
  let listed: readonly (readonly KubeObject[])[] = [];
  let current: NodeAgentObjects | undefined;
  let everywhere: { readonly cache: Cache<Pod>; stop(): void } | undefined;
  return {
    objects() {
      const lists = caching.map(([, cache]) => cache.list());
      if (current !== undefined && lists.every((list, i) => list === listed[i])) return current;
      listed = lists;
      const objects: Record<string, readonly KubeObject[] | readonly PodAddress[]> = { ...noObjects };
      for (const [i, [name]] of caching.entries()) objects[name] = lists[i] ?? [];
      // Many, and few readers want them.
      Object.defineProperty(objects, 'pods', { enumerable: true, get: () => places(everywhere?.cache) });
      current = objects as unknown as NodeAgentObjects;
      return current;
    },
    async synced(until) {
      // One after the other, though all fill at the same time: a signal has one listener, not one for each kind.
      for (const [, cache] of caching) await cache.synced(until);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    needPods(needed) {
      if (needed === (everywhere !== undefined)) return;
      if (!needed) {
        everywhere?.stop();
        everywhere = undefined;
        return;
      }
      const life = abortScope(signal);
      const cache = caches.scoped(pods, { ...placedPods, transform: slimPod }, life.signal);
      cache.subscribe(({ before, after }) => {
        if (!hasSameAddress(before, after)) tell('pods');
      });
      cache.synced(life.signal).then(
        () => tell('pods'),
        () => undefined,
      );
      everywhere = {
        cache,
        stop() {
          life.abort();
          life.unlink();
        },
      };
    },
  };
}

/** An address that is not granted yet leads nowhere. */
const seen = (what: keyof NodeAgentObjects, object: KubeObject | undefined): KubeObject | undefined =>
  what === 'ips' && (object as Ip | undefined)?.status?.ip === undefined ? undefined : object;

const places = (pods: Cache<Pod> | undefined): readonly PodAddress[] =>
  pods?.isSynced() ? pods.list().flatMap(addressOf) : [];

/** A pod that has no address yet is nowhere, bound or not. */
function hasSameAddress(before: Pod | undefined, after: Pod | undefined): boolean {
  const [was] = before ? addressOf(before) : [];
  const [is] = after ? addressOf(after) : [];
  return was?.ip === is?.ip && was?.node === is?.node;
}

const addressOf = ({ spec, status }: Pod): readonly PodAddress[] =>
  status?.podIP && spec?.nodeName ? [{ ip: status.podIP, node: spec.nodeName }] : [];
