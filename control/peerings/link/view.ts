/** The network of a peering as people see it. */
import type { Link, LinkEnd } from '../../model/link.ts';
import type { LinkEndView, LinkView, PeeringView } from '../../model/peering.ts';
import type { PeeringRecord } from '../../model/peering-records.ts';

export function networkView({ spec, state }: PeeringRecord): Pick<PeeringView, 'network'> {
  if (!spec.network) return {};
  return { network: { ...spec.network, ...(state.link ? { link: linkView(state.link, spec.consumer) } : {}) } };
}

function linkView({ layout, consumer, provider }: Link, consumerId: string): LinkView {
  const [endpoint] = (layout.server === consumerId ? consumer : provider).candidates;
  return {
    server: layout.server,
    ...(endpoint === undefined ? {} : { endpoint }),
    serviceType: layout.serviceType,
    mtu: layout.mtu,
    consumer: endView(consumer),
    provider: endView(provider),
  };
}

function endView({ connection }: LinkEnd): LinkEndView {
  if (!connection) return { value: 'Unknown' };
  const { lastHandshakeTime, ...rest } = connection;
  if (lastHandshakeTime === undefined) return rest;
  const ageMs = connection.reportedAt - Date.parse(lastHandshakeTime);
  return { ...rest, handshakeAgeSeconds: Math.max(0, Math.round(ageMs / 1_000)) };
}
