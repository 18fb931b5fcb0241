/** All peerings as a table. */
import type { Peering } from '#shared/api-client/broker-api.ts';
import { clusters, connection, peerings } from '../data/live.ts';
import { hrefOf } from '../data/route.ts';
import { linkOf, linkText, pairOf, toneOf } from '../model/peering.ts';
import { amount, labelTexts, quantities } from '../model/text.ts';
import { Command, Empty, Labels, Section, State } from '../parts/bits.tsx';
import { timeColumn } from '../parts/list.tsx';
import { can } from '../parts/load.ts';
import { type ShownColumn, Table } from '../parts/table.tsx';
import { NoClusters } from './clusters.tsx';

export const peeringColumns: readonly ShownColumn<Peering>[] = [
  {
    key: 'pair',
    title: 'Consumer → provider',
    value: pairOf,
    cell: (peering) => <a href={hrefOf('peering', peering.id)}>{pairOf(peering)}</a>,
  },
  {
    key: 'phase',
    title: 'Phase',
    value: ({ phase }) => phase,
    cell: (peering) => <State tone={toneOf(peering)}>{peering.phase}</State>,
  },
  {
    key: 'granted',
    title: 'Granted',
    value: ({ granted }) => amount(granted, 'cpu'),
    cell: ({ granted }) => quantities(granted, 'nothing yet'),
  },
  {
    key: 'link',
    title: 'Link',
    value: (peering) => linkOf(peering).rtt ?? -1,
    cell: (peering) => linkText(peering),
  },
  { key: 'tenant', title: 'Other tenant', value: ({ across }) => across?.peerTenant ?? '' },
  {
    key: 'labels',
    title: 'Labels',
    value: ({ labels }) => labelTexts(labels).join(' '),
    cell: ({ labels }) => <Labels of={labels} />,
  },
  { key: 'waiting', title: 'Waiting for', value: ({ waitingFor }) => waitingFor },
  timeColumn('created', 'Asked for', ({ createdAt }) => createdAt),
];

export const PeeringsPage = () => (
  <>
    <div class="head">
      <h1>Peerings</h1>
      <div class="actions">{can('peerings:write') && <a href={hrefOf('peer')}>Peer two clusters</a>}</div>
    </div>
    <Section title="All peerings">
      <Table
        name="Peerings"
        rows={[...peerings.value.values()]}
        columns={peeringColumns}
        rowKey={({ id }) => id}
        empty={connection.value === 'loading' ? null : <NoPeerings />}
      />
    </Section>
  </>
);

export function NoPeerings() {
  if (clusters.value.size === 0) return <NoClusters />;
  const [consumer = 'rome', provider = 'milan'] = clusters.value.keys();
  return (
    <Empty title="No peering yet.">
      <p>A consumer borrows from a provider, which appears in it as one more node.</p>
      <Command line={`isthmus peer ${consumer} ${provider} --cpu 2 --memory 2Gi --pods 20 --wait`} />
      {can('peerings:write') && (
        <p>
          <a href={hrefOf('peer')}>Peer two clusters here</a>
        </p>
      )}
    </Empty>
  );
}
