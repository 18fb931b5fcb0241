/** What is known of the consumer's nodes and addresses, with callbacks for the controllers that depend on it. */
import { rangeIps, rangeNodes } from '#agent/model/network-selections.ts';
import type { Cache, Caches } from '#kube/model/types.ts';
import { containsRange, moveAddress, parseAddress, parseCidr } from '#shared/domain/cidr.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { ClusterFacts, NodeKind } from '../kinds/kind.ts';

export interface NetworkFacts extends Omit<ClusterFacts, 'service'> {
  synced(signal: AbortSignal): Promise<void>;
  /** Until the returned function is called. */
  follow(listeners: FactListeners): () => void;
}

interface FactListeners {
  /** A node came, went, or changed its cluster. */
  readonly onNode: (name: string) => void;
  readonly onIp: (namespace: string, address: string) => void;
  /** Ranges of some peer. */
  readonly onRanges: () => void;
}

const byAddress = {
  'namespaced-address': ({ metadata, spec }: Ip): readonly string[] => [`${metadata.namespace}/${spec.ip}`],
};
const byPeer = {
  peer: ({ metadata }: Configuration): readonly string[] => [metadata.labels?.[label.remoteClusterId] ?? ''],
};

/** `virtual`: every virtual Node of this cluster. `provider`: the cluster that receives the addresses. */
export function networkFacts(caches: Caches, virtual: Cache<Node>, provider: string): NetworkFacts {
  const physical = rangeNodes(caches);
  const ips = rangeIps(caches, byAddress);
  const configurations = caches.cache(networkKinds.configurations, { indexes: byPeer });
  const configurationOf = (peer: string): Configuration | undefined => configurations.byIndex('peer', peer)[0];

  function node(name: string): NodeKind {
    const found = virtual.get({ name });
    if (found) return { is: 'virtual', provider: found.metadata.labels?.[label.remoteClusterId] ?? '' };
    return { is: physical.get({ name }) ? 'physical' : 'unknown' };
  }

  /** Without a link to that provider both clusters share one network, or their pods cannot reach each other anyway. */
  function exported(namespace: string, address: string): string | undefined {
    const configuration = configurationOf(provider);
    if (!configuration) return address;
    if (configuration.spec.local?.cidr.pod.some((range) => isIn(address, range))) return address;
    const ip = ips.byIndex('namespaced-address', `${namespace}/${address}`)[0];
    return ip?.metadata.deletionTimestamp === undefined ? ip?.status?.ip : undefined;
  }

  function atHome(peer: string, address: string): string {
    const configuration = configurationOf(peer);
    const real = configuration?.spec.remote.cidr.pod ?? [];
    const views = configuration?.status?.remote?.cidr.pod ?? [];
    for (const [index, view] of views.entries()) {
      const moved = moveAddress(address, view, real[index] ?? '');
      if (moved !== undefined) return moved;
    }
    return address;
  }

  return {
    node,
    exported,
    atHome,
    async synced(signal) {
      await Promise.all([physical, ips, configurations, virtual].map((cache) => cache.synced(signal)));
    },
    follow({ onNode, onIp, onRanges }) {
      const clusterOf = (one: Node | undefined) => one?.metadata.labels?.[label.remoteClusterId];
      const nodeChanged = ({ before, after }: { before?: Node; after?: Node }): void => {
        const name = (after ?? before)?.metadata.name;
        if (name !== undefined && (!before || !after || clusterOf(before) !== clusterOf(after))) onNode(name);
      };
      const ends = [
        physical.subscribe(nodeChanged),
        virtual.subscribe(nodeChanged),
        ips.subscribe(({ before, after }) => {
          const ip = after ?? before;
          if (ip && before?.status?.ip !== after?.status?.ip) onIp(ip.metadata.namespace ?? '', ip.spec.ip);
        }),
        configurations.subscribe(() => onRanges()),
      ];
      return () => {
        for (const end of ends) end();
      };
    },
  };
}

function isIn(address: string, range: string): boolean {
  const [at, within] = [parseAddress(address), parseCidr(range)];
  return at !== undefined && within !== undefined && containsRange(within, { base: at, length: 32 });
}
