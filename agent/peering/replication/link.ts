/** The link to a provider, as far as it decides whether credentials still lead anywhere. */
import { peerOf } from '#agent/model/peering-selections.ts';
import type { Cache, Caches } from '#kube/model/types.ts';
import type { KubeObject, Secret } from '#shared/domain/kube-object.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { ReachabilityFacts } from './reachability.ts';

export interface LinkView {
  readonly caches: readonly Cache<KubeObject>[];
  reachabilityOf(credentials: Secret): ReachabilityFacts;
}

export function createLinkView(caches: Caches): LinkView {
  const configurations = caches.cache(networkKinds.configurations);
  const gateways = [caches.cache(networkKinds.gatewayServers), caches.cache(networkKinds.gatewayClients)].map(
    (cache) => cache as unknown as Cache<KubeObject>,
  );
  return {
    caches: [configurations as unknown as Cache<KubeObject>, ...gateways],
    reachabilityOf(credentials) {
      const isOfLink = (object: KubeObject): boolean =>
        object.metadata.namespace === credentials.metadata.namespace && peerOf(object) === peerOf(credentials);
      return {
        credentials,
        configurations: configurations.list().filter(isOfLink),
        gateways: gateways.flatMap((cache) => cache.list().filter(isOfLink)),
      };
    },
  };
}
