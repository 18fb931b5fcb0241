/** The kubelet endpoint of one virtual node, with its port, the certificate that it shows, the CA of its callers and what it tells of pods. */
import type { Cache, Cluster } from '#kube/model/types.ts';
import { configMaps } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Log } from '#shared/ports/log.ts';
import type { Mapping } from '../pods/decide.ts';
import type { ProviderSession } from '../virtual-node/provider-session.ts';
import { authenticationConfig, clientCaOf, type NodeAccess } from './caller.ts';
import { KubeletEndpoint, preferredPort } from './endpoint.ts';
import { endpointPods } from './endpoint-pods.ts';
import { keepCertificate, selfSigned } from './serving-certificate.ts';
import { usagePagesOf } from './usage-pages.ts';

export interface NodeEndpointDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly ids: Ids;
  /** Address under which the API server reaches this process. */
  readonly podIp: string;
  readonly kubeletPortBase: number;
  readonly access: NodeAccess;
}

/** What is known of the node at the moment. */
export interface ServedNode {
  readonly name: string;
  readonly localPods: Cache<Pod>;
  readonly mapping: (namespace: string) => Mapping | undefined;
  readonly session: () => ProviderSession | undefined;
}

export interface NodeEndpoint {
  /** 0 until it listens. */
  readonly port: number;
  /** Follows the CA of its callers; returns the function that ends it. */
  follow(): () => void;
  listen(): Promise<void>;
  /** Until the signal aborts. */
  keepCertificate(signal: AbortSignal): Promise<void>;
  /** Ends every stream. */
  close(): Promise<void>;
}

export function createNodeEndpoint(node: ServedNode, deps: NodeEndpointDeps): NodeEndpoint {
  const { cluster, podIp, access, log } = deps;
  const { name: nodeName, localPods, session } = node;
  const subject = { nodeName, addresses: [podIp] };
  const usage = usagePagesOf(nodeName, deps, localPods, session);
  const clientCa = cluster.caches.cache(configMaps, {
    namespace: authenticationConfig.namespace,
    fieldSelector: `metadata.name=${authenticationConfig.name}`,
  });
  const endpoint = new KubeletEndpoint(
    {
      nodeName,
      access,
      ...endpointPods({ ...node, nodeName, api: cluster.api }),
      usage: (page, signal) => usage.page(page, signal),
      log,
    },
    selfSigned(subject, deps),
    undefined,
  );
  return {
    get port() {
      return endpoint.port;
    },
    follow: () => clientCa.subscribe(({ after }) => endpoint.useClientCa(clientCaOf(after))),
    async listen() {
      await endpoint.listen(podIp, preferredPort(deps.kubeletPortBase, nodeName), 1_000);
    },
    keepCertificate: (signal) =>
      keepCertificate(subject, { ...cluster, ...deps }, (pair) => endpoint.useCertificate(pair), signal),
    close: () => endpoint.close(),
  };
}
