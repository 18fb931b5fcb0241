/** The link of one peering: its state, how each end sees it, and how it was lately. */
import type { Peering } from '#shared/api-client/broker-api.ts';
import { api } from '../data/api.ts';
import { linkOf, linkText } from '../model/peering.ts';
import { chartsOf, rateText, spanOf } from '../model/series.ts';
import { Facts, Section, Time } from '../parts/bits.tsx';
import { Charts, type Measured, type SpanName } from '../parts/charts.tsx';

type LinkEnd = NonNullable<NonNullable<Peering['network']>['link']>['consumer'];

export function LinkSection({ peering }: { peering: Peering }) {
  const { network } = peering;
  if (network === undefined || !network.enabled) {
    return (
      <Section title="Link">
        <p>Pods of the two clusters do not reach each other by this peering: it was made without a network.</p>
      </Section>
    );
  }
  const { link } = network;
  return (
    <Section title="Link">
      <Facts
        rows={[
          ['State', linkOf(peering).state === 'none' ? 'not made yet' : linkText(peering)],
          [
            'Dialled',
            link === undefined
              ? network.gatewayLocation
              : `${link.server} at ${link.endpoint ?? 'an address not known yet'}`,
          ],
          ['Exposed as', link?.serviceType ?? network.serviceType ?? 'chosen by the cluster'],
          ['MTU, at most', network.mtu],
          ['API server through the link', network.inBand ? 'yes' : 'no'],
        ]}
      />
      {link !== undefined && (
        <div class="two">
          <End title={`As ${peering.consumer} sees it`} end={link.consumer} />
          <End title={`As ${peering.provider} sees it`} end={link.provider} />
        </div>
      )}
    </Section>
  );
}

const End = ({ title, end }: { title: string; end: LinkEnd }) => (
  <div>
    <h3>{title}</h3>
    <Facts
      rows={[
        ['Status', end.status],
        ['Round trip', end.latency ?? 'not measured'],
        ['Loss', end.packetLoss === undefined ? 'not measured' : `${end.packetLoss} %`],
        [
          'Throughput',
          end.throughput === undefined
            ? 'not measured'
            : `${rateText(end.throughput.received)} in, ${rateText(end.throughput.sent)} out`,
        ],
        ['Path MTU', end.mtu ?? 'not measured'],
        ['Handshake', end.handshakeAgeSeconds === undefined ? 'not reported' : `${end.handshakeAgeSeconds} s old`],
        ['Reported', <Time key="reported" at={end.reportedAt} />],
      ]}
    />
  </div>
);

/** The link as the consumer measured it, or the provider where only that one is of this tenant. */
export function Lately({ peering: { id, consumer, provider } }: { peering: Peering }) {
  const read = async (span: SpanName): Promise<Measured> => {
    const series = await api.getPeeringSamples({ path: { peering: id }, query: { span } });
    const [here, there, link] =
      series.consumer === undefined
        ? [provider, consumer, series.provider ?? []]
        : [consumer, provider, series.consumer];
    const names = { sent: `${here} to ${there}`, received: `${there} to ${here}` };
    return { span: spanOf(series), charts: chartsOf(link, series.provider ?? [], names) };
  };
  return <Charts read={read} deps={[id]} />;
}
