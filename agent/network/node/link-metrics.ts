/** What the links of this node tell a scraper, from the last look at each: the tunnel is not asked for it. */
import { linkMetrics } from '#shared/metrics/definitions.ts';
import type { Registry } from '#shared/metrics/registry.ts';
import type { LinkReport, TunnelSession } from '../link/tunnel/run.ts';

/** Of both implementations, as Liqo calls it. */
const driver = 'wireguard';

export type Implementation = 'kernel' | 'userspace';

export interface LinkMetrics {
  /** One link whose active gateway is on this node. */
  link(clusterId: string, implementation: Implementation): MeteredLink;
  /** There is a gateway for this peer on this node. */
  known(clusterId: string): void;
  /** The process of a tunnel ended and is there again. */
  restarted(clusterId: string): void;
}

interface MeteredLink {
  answered(rttMs: number): void;
  report(report: LinkReport, session: TunnelSession | undefined): void;
  /** The gateway is not the active one any more. */
  end(): void;
}

interface Link {
  readonly cluster_id: string;
  readonly implementation: Implementation;
  report: LinkReport;
  /** Of the tunnel, as it was last seen. */
  session: TunnelSession | undefined;
}

export function createLinkMetrics(registry: Registry): LinkMetrics {
  const links = new Set<Link>();
  const peerOf = ({ cluster_id }: Link) => ({ driver, cluster_id }) as const;
  const perPeer = (value: (link: Link) => number | undefined) =>
    function* () {
      for (const link of links) {
        const found = value(link);
        if (found !== undefined) yield [peerOf(link), found] as const;
      }
    };
  registry.collect(
    linkMetrics.receivedBytes,
    perPeer(({ session }) => session?.receivedBytes),
  );
  registry.collect(
    linkMetrics.sentBytes,
    perPeer(({ session }) => session?.sentBytes),
  );
  registry.collect(
    linkMetrics.latency,
    perPeer(({ report }) => (report.rttMs === undefined ? undefined : report.rttMs * 1_000)),
  );
  registry.collect(
    linkMetrics.connected,
    perPeer(({ report }) => (report.value === 'Connected' ? 1 : 0)),
  );
  registry.collect(linkMetrics.implementation, () =>
    [...links].map(({ implementation }) => [{ driver, implementation }, 1]),
  );
  registry.collect(
    linkMetrics.packetLoss,
    perPeer(({ report }) => (report.packetLoss === undefined ? undefined : report.packetLoss / 100)),
  );
  registry.collect(
    linkMetrics.handshake,
    perPeer(({ report }) => (report.handshakeAt === undefined ? undefined : report.handshakeAt / 1_000)),
  );
  registry.collect(
    linkMetrics.mtu,
    perPeer(({ report }) => report.mtu),
  );
  return {
    link(cluster_id, implementation) {
      const link: Link = { cluster_id, implementation, report: { value: 'Connecting' }, session: undefined };
      links.add(link);
      return {
        answered: (rttMs) => registry.observe(linkMetrics.latencyHistogram, peerOf(link), rttMs * 1_000),
        report(report, session) {
          link.report = report;
          link.session = session;
        },
        end: () => void links.delete(link),
      };
    },
    known: (cluster_id) => registry.add(linkMetrics.restarts, { cluster_id }, 0),
    restarted: (cluster_id) => registry.add(linkMetrics.restarts, { cluster_id }),
  };
}
