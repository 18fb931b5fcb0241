/** How the provider is reached: with the rights that it gave this consumer. */
import type { Cluster } from '#kube/model/types.ts';

export type ProviderClients = Pick<Cluster, 'api' | 'caches'>;
