/** How this cluster's API server is reached by its pods, wherever they run. */
import { rangeIps } from '#agent/model/network-selections.ts';
import type { Caches } from '#kube/model/types.ts';
import { namespaces, services } from '#shared/domain/core-kinds.ts';
import type { Namespace } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import { ipType, networkLabel } from '#shared/domain/network-keys.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { HomeApi } from '../model/api-access.ts';

const usualPort = 443;

export interface HomeApiSource {
  synced(signal: AbortSignal): Promise<void>;
  /** As the pods at this provider reach it. */
  toward(provider: string): HomeApi;
  /** False: an administrator has switched tokens off for the pods of that namespace. */
  isFor(namespace: string): boolean;
  /** Calls back when that changes; returns the function that ends it. */
  follow(onChange: (namespace: string) => void): () => void;
}

export function homeApiSource(caches: Caches, systemNamespace: string): HomeApiSource {
  const service = caches.cache(services, { namespace: 'default', fieldSelector: 'metadata.name=kubernetes' });
  const ips = rangeIps(caches);
  const spaces = caches.cache(namespaces);
  const isOn = (space: Namespace | undefined): boolean =>
    space?.metadata.annotations?.[isthmusAnnotation.apiServerTokens] !== 'disabled';
  const configurations = caches.cache(networkKinds.configurations);
  return {
    async synced(signal) {
      await Promise.all([service, ips, configurations, spaces].map((cache) => cache.synced(signal)));
    },
    isFor: (namespace) => isOn(spaces.get({ name: namespace })),
    follow: (onChange) =>
      spaces.subscribe(({ before, after }) => {
        if (isOn(before) !== isOn(after)) onChange((after ?? before)?.metadata.name ?? '');
      }),
    toward(provider) {
      const linked = configurations
        .list()
        .some(({ metadata }) => metadata.labels?.[label.remoteClusterId] === provider);
      const addresses = ips
        .list()
        .filter(({ metadata }) => metadata.namespace === systemNamespace)
        .filter(({ metadata }) => metadata.labels?.[networkLabel.ipType] === ipType.apiServer)
        .flatMap(({ status }) => status?.ip ?? []);
      const ports = service.get({ namespace: 'default', name: 'kubernetes' })?.spec?.ports ?? [];
      const port = ports.find(({ name }) => name === 'https') ?? ports[0];
      return { port: port?.port ?? usualPort, addresses: linked ? addresses : [] };
    },
  };
}
