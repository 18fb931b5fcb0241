/** All clusters as a table. */
import type { Cluster } from '#shared/api-client/broker-api.ts';
import { clusters, connection, peerings } from '../data/live.ts';
import { hrefOf } from '../data/route.ts';
import { amount, labelTexts } from '../model/text.ts';
import { Command, Empty, Labels, Section, State } from '../parts/bits.tsx';
import { timeColumn } from '../parts/list.tsx';
import { can } from '../parts/load.ts';
import { type ShownColumn, Table } from '../parts/table.tsx';

export const clusterTone = ({ state, online }: Pick<Cluster, 'state' | 'online'>) =>
  state === 'left' ? (['off', 'left'] as const) : online ? (['good', 'online'] as const) : (['bad', 'away'] as const);

const columns: readonly ShownColumn<Cluster>[] = [
  {
    key: 'name',
    title: 'Name',
    value: ({ name }) => name,
    cell: ({ name }) => <a href={hrefOf('cluster', name)}>{name}</a>,
  },
  {
    key: 'state',
    title: 'State',
    value: (cluster) => clusterTone(cluster)[1],
    cell: (cluster) => {
      const [tone, word] = clusterTone(cluster);
      return <State tone={tone}>{word}</State>;
    },
  },
  {
    key: 'peerings',
    title: 'Peerings',
    value: ({ name }) =>
      [...peerings.value.values()].filter(
        ({ consumer, provider, phase }) => phase !== 'Gone' && (consumer === name || provider === name),
      ).length,
  },
  { key: 'nodes', title: 'Nodes', value: ({ nodes }) => nodes },
  {
    key: 'cpu',
    title: 'CPU',
    value: ({ allocatable }) => amount(allocatable, 'cpu'),
    cell: ({ allocatable }) => allocatable.cpu ?? '',
  },
  {
    key: 'memory',
    title: 'Memory',
    value: ({ allocatable }) => amount(allocatable, 'memory'),
    cell: ({ allocatable }) => allocatable.memory ?? '',
  },
  { key: 'kubernetes', title: 'Kubernetes', value: ({ kubernetesVersion }) => kubernetesVersion },
  {
    key: 'labels',
    title: 'Labels',
    value: ({ labels }) => labelTexts(labels).join(' '),
    cell: ({ labels }) => <Labels of={labels} />,
  },
  timeColumn('seen', 'Last seen', ({ lastSeenAt }) => lastSeenAt),
];

export const ClustersPage = () => (
  <>
    <div class="head">
      <h1>Clusters</h1>
      <div class="actions">{can('clusters:join') && <a href={hrefOf('join')}>Join a cluster</a>}</div>
    </div>
    <Section title="All clusters">
      <Table
        name="Clusters"
        rows={[...clusters.value.values()]}
        columns={columns}
        rowKey={({ name }) => name}
        empty={connection.value === 'loading' ? null : <NoClusters />}
      />
    </Section>
  </>
);

export const NoClusters = () => (
  <Empty title="No cluster has joined yet.">
    <p>
      A cluster joins by one command, with its kubeconfig, from a machine that is logged in. It installs the agent,
      which then appears here.
    </p>
    <Command line="isthmus join rome --kubeconfig rome.kubeconfig" />
    {can('clusters:join') && (
      <p>
        <a href={hrefOf('join')}>Show every line to type, and watch it arrive</a>
      </p>
    )}
  </Empty>
);
