/** What the kubelet endpoint of a virtual node knows of its pods: where each runs at the provider, and which there are. */
import type { Cache, KubeApi } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Mapping } from '../pods/decide.ts';
import type { ProviderSession } from '../virtual-node/provider-session.ts';
import type { EndpointDeps } from './endpoint.ts';

export interface EndpointPodsDeps {
  readonly nodeName: string;
  readonly api: KubeApi;
  /** Pods of the node. */
  readonly localPods: Cache<Pod>;
  readonly mapping: (namespace: string) => Mapping | undefined;
  readonly session: () => ProviderSession | undefined;
}

export function endpointPods(deps: EndpointPodsDeps): Pick<EndpointDeps, 'target' | 'podList'> {
  const { nodeName, api, localPods } = deps;
  return {
    target(namespace, name) {
      const session = deps.session();
      if (!localPods.get({ namespace, name })) {
        throw new AppError('not_found', `pod ${namespace}/${name} is not on node ${nodeName}`);
      }
      const isOffloaded = deps.mapping(namespace)?.kind !== 'none';
      if (isOffloaded && !session)
        throw new AppError('not_found', `node ${nodeName} has no connection to its provider`);
      const remote = session?.remote(namespace);
      if (!isOffloaded || !session || !remote) {
        throw new AppError('not_found', `namespace ${namespace} is not offloaded to node ${nodeName}`);
      }
      return { connection: session.provider.connection, remoteNamespace: remote.remote };
    },

    async podList(running, signal) {
      const items = await api.list(pods, { fieldSelector: `spec.nodeName=${nodeName}` }, signal);
      const kept = running ? items.filter((pod) => pod.status?.phase === 'Running') : items;
      return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: kept };
    },
  };
}
