/** How the consumer reaches the provider's API server when that is to be through the link. */
import { moveAddress } from '#shared/domain/cidr.ts';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { PeeringSpec } from '../../model/peering-records.ts';
import type { EndReport } from './reports.ts';

export type ProxyPath =
  | { readonly kind: 'direct' }
  /** The provider offers none yet, the consumer has no name for it, or nothing has crossed the link yet. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'proxy'; readonly url: string };

export interface ProxyInput {
  readonly provider: ClusterFacts;
  readonly consumer: EndReport;
  /** What was found out before. It stays, also when the link changes or goes. */
  readonly known: string | undefined;
  /** Both ends say that the link is up. */
  readonly linked: boolean;
}

/** The provider's proxy, by the address that the consumer knows it by: same place in the range that the consumer was granted for it. */
export function proxyPath(spec: PeeringSpec, { provider, consumer, known: before, linked }: ProxyInput): ProxyPath {
  if (!spec.network?.inBand) return { kind: 'direct' };
  const known: ProxyPath = before === undefined ? { kind: 'unknown' } : { kind: 'proxy', url: before };
  const { network } = provider;
  const offered = network?.apiServerProxy;
  const views = consumer.remote?.external ?? [];
  // An identity that is used before the link is up fails, and backs off just when it could succeed.
  if (before === undefined && !linked) return known;
  if (!network || offered === undefined || !consumer.isConfigured) return known;
  const at = offered.lastIndexOf(':');
  for (const [i, range] of network.externalCidrs.entries()) {
    const view = views[i];
    const address = view === undefined ? undefined : moveAddress(offered.slice(0, at), range, view);
    if (address !== undefined) return { kind: 'proxy', url: `http://${address}${offered.slice(at)}` };
  }
  return known;
}
