/** What the virtual nodes of this cluster share when they reflect. */
import { reflectedKinds } from '#agent/model/policies.ts';
import { optionsTemplateRef } from '#agent/model/vk-options.ts';
import type { Cache, Cluster } from '#kube/model/types.ts';
import { KeyedMutex } from '#shared/async/keyed-mutex.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { vkOptionsTemplates } from '#shared/schema/liqo/vk-options-template.ts';
import { type ReflectionOptions, reflectionOptions } from './engine/options.ts';
import { SharedScopes } from './engine/shared-watches.ts';
import type { HomeApi } from './model/api-access.ts';
import { homeApiSource } from './tokens/home-api.ts';

export interface SharedReflectionDeps {
  readonly cluster: Cluster;
  readonly systemNamespace: string;
  /** Every virtual Node of this cluster. */
  readonly nodes: Cache<Node>;
  /** A pod here that is offloaded to that provider, through whichever virtual node. */
  readonly pod: (provider: string, namespace: string, name: string) => Pod | undefined;
  /** How often everything is looked at again; default 5 minutes. */
  readonly resyncMs?: number | undefined;
}

export interface SharedReflection {
  readonly deps: SharedReflectionDeps;
  readonly scopes: SharedScopes;
  readonly providerMutex: KeyedMutex;
  options(virtualNode: VirtualNode): ReflectionOptions;
  /** Undefined: pods of that namespace do not use it from that provider. */
  home(provider: string, options: ReflectionOptions, namespace: string): HomeApi | undefined;
  synced(signal: AbortSignal): Promise<void>;
  /** Calls back when some template or PeeringPolicy changed; returns the function that ends it. */
  follow(onChange: () => void): () => void;
  /** Calls back with a namespace where tokens are switched on or off; returns the function that ends it. */
  followTokens(onChange: (namespace: string) => void): () => void;
}

export function sharedReflection(deps: SharedReflectionDeps): SharedReflection {
  const { cluster, systemNamespace } = deps;
  const templates = cluster.caches.cache(vkOptionsTemplates);
  const policies = cluster.caches.cache(peeringPolicies);
  const homeApi = homeApiSource(cluster.caches, systemNamespace);
  return {
    deps,
    scopes: new SharedScopes(cluster.caches),
    providerMutex: new KeyedMutex(),
    options: (virtualNode) =>
      reflectionOptions(
        virtualNode,
        templates.get(optionsTemplateRef(virtualNode, systemNamespace)),
        reflectedKinds(policies.list(), 'asConsumer', virtualNode.spec.clusterID),
      ),
    home(provider, { apiSupport, kinds }, namespace) {
      // Without its tokens or the root CA a pod would only wait for them.
      const isServed = [kinds.serviceaccount, kinds.configmap].every(
        ({ workers, forbidden }) => workers > 0 && !forbidden,
      );
      return apiSupport && isServed && homeApi.isFor(namespace) ? homeApi.toward(provider) : undefined;
    },
    async synced(signal) {
      await Promise.all([templates.synced(signal), policies.synced(signal), homeApi.synced(signal)]);
    },
    follow(onChange) {
      const ends = [templates.subscribe(onChange), policies.subscribe(onChange)];
      return () => {
        for (const end of ends) end();
      };
    },
    followTokens: (onChange) => homeApi.follow(onChange),
  };
}
