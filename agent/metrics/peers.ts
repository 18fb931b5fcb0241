/** What the objects of this cluster say of its peers, read from caches at each scrape: nothing is asked of an API server for it. */
import { lifetimeOf } from '#agent/pki/certificate.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import type { Caches } from '#kube/model/types.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { amountsOf } from '#shared/domain/pod-resources.ts';
import type { Nanos } from '#shared/domain/quantity.ts';
import { controllerMetrics } from '#shared/metrics/definitions.ts';
import type { Registry } from '#shared/metrics/registry.ts';
import type { AuthParams, ResourceList } from '#shared/schema/definition/fields.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';

/** The broker as this cluster has seen it last. */
export interface BrokerFacts {
  readonly connected: boolean;
  readonly exchangedAtMs: number | undefined;
}

/** Until the signal aborts. `broker`: undefined while there is none. */
export function countPeers(
  registry: Registry,
  caches: Caches,
  broker: () => BrokerFacts | undefined,
  signal: AbortSignal,
): void {
  const peers = caches.cache(foreignClusters);
  const granted = caches.cache(quotas);
  const nodes = caches.cache(virtualNodes);
  const certificates = caches.cache(identities);
  const ends = [
    registry.collect(controllerMetrics.phase, () =>
      peers.list().map((peer) => [{ cluster_id: peer.spec.clusterID, role: roleOf(peer), phase: phaseOf(peer) }, 1]),
    ),
    registry.collect(controllerMetrics.condition, () =>
      peers.list().flatMap((peer) =>
        conditionsOf(peer).map(({ module, type, status }) => {
          return [{ cluster_id: peer.spec.clusterID, module, condition: type, status }, 1] as const;
        }),
      ),
    ),
    registry.collect(controllerMetrics.granted, function* () {
      for (const { metadata, spec } of granted.list())
        yield* amounts(spec.resources, metadata.labels?.[label.remoteClusterId] ?? '', 'Consumer', sliceOf(metadata));
      for (const { metadata, spec } of nodes.list())
        yield* amounts(spec.resourceQuota?.hard, spec.clusterID, 'Provider', sliceOf(metadata));
    }),
    registry.collect(controllerMetrics.used, function* () {
      for (const { metadata, status } of granted.list())
        yield* amounts(status?.used, metadata.labels?.[label.remoteClusterId] ?? '', 'Consumer', sliceOf(metadata));
    }),
    ...([controllerMetrics.certificateEnd, controllerMetrics.tokenEnd] as const).map((metric) =>
      registry.collect(metric, function* () {
        for (const { metadata, spec } of certificates.list()) {
          const { certificate, token } = endsOf(spec.authParams);
          const end = metric === controllerMetrics.tokenEnd ? token : certificate;
          const labels = { cluster_id: spec.clusterID, kind: spec.type, name: metadata.name };
          if (end !== undefined) yield [labels, end / 1_000] as const;
        }
      }),
    ),
    registry.collect(controllerMetrics.brokerConnected, () => {
      const facts = broker();
      return facts === undefined ? [] : [[{}, facts.connected ? 1 : 0]];
    }),
    registry.collect(controllerMetrics.brokerExchange, () => {
      const at = broker()?.exchangedAtMs;
      return at === undefined ? [] : [[{}, at / 1_000]];
    }),
  ];
  const end = (): void => {
    for (const one of ends) one();
  };
  signal.addEventListener('abort', end, { once: true });
}

interface Named {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
}
const sliceOf = ({ name, labels }: Named): string => labels?.[label.resourceSliceName] ?? name;

const numberOf = (amount: Nanos): number => Number(amount) / 1e9;

export function* amounts(
  resources: ResourceList | undefined,
  cluster_id: string,
  role: 'Consumer' | 'Provider',
  slice: string,
) {
  for (const [resource, amount] of Object.entries(amountsOf(resources)))
    yield [{ cluster_id, role, slice, resource }, numberOf(amount)] as const;
}

/** When the credentials of an identity end; absent: it has none of that kind, or none that can be read. */
export function endsOf({ signedCRT, tokenExpiration }: AuthParams): { certificate?: number; token?: number } {
  const token = Date.parse(tokenExpiration ?? '');
  const more = Number.isNaN(token) ? {} : { token };
  try {
    return signedCRT === undefined ? more : { certificate: lifetimeOf(fromBase64(signedCRT)).notAfterMs, ...more };
  } catch {
    return more;
  }
}

const roleOf = ({ status }: ForeignCluster): string => status?.role ?? 'Unknown';

function conditionsOf({ status }: ForeignCluster) {
  const modules = Object.entries(status?.modules ?? {}).filter(([, { enabled }]) => enabled);
  return [
    ...modules.flatMap(([module, { conditions = [] }]) => conditions.map((one) => ({ module, ...one }))),
    ...(status?.conditions ?? []).map((one) => ({ module: 'peer', ...one })),
  ];
}

const good = new Set<string>(['Established', 'Ready']);

/** Over all modules that are enabled. Pure. */
export function phaseOf(peer: ForeignCluster): 'Ready' | 'Pending' | 'Error' {
  const states = conditionsOf(peer).map(({ status }) => status);
  if (states.includes('Error')) return 'Error';
  return states.length > 0 && states.every((status) => good.has(status)) ? 'Ready' : 'Pending';
}
