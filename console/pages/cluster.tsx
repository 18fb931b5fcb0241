/** One cluster: facts, capacity, peerings, what it agrees to, what happened. */

import { useState } from 'preact/hooks';
import type { Cluster, Peering } from '#shared/api-client/broker-api.ts';
import { api, isStale } from '../data/api.ts';
import { clusters, connection, peerings, refreshCluster } from '../data/live.ts';
import { hrefOf } from '../data/route.ts';
import { save } from '../model/edit.ts';
import { linkOf } from '../model/peering.ts';
import { chartsOf, spanOf, together } from '../model/series.ts';
import { quantities, sumOf } from '../model/text.ts';
import { Bars, Command, Empty, Facts, Section, State, Time } from '../parts/bits.tsx';
import { Charts, type Measured, type SpanName } from '../parts/charts.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { EditableLabels } from '../parts/labels.tsx';
import { can } from '../parts/load.ts';
import { Table } from '../parts/table.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { clusterTone } from './clusters.tsx';
import { peeringColumns } from './peerings.tsx';

const takesPart = (name: string, { consumer, provider }: Peering): boolean => consumer === name || provider === name;

export function ClusterPage({ name }: { name: string }) {
  const cluster = clusters.value.get(name);
  if (cluster === undefined) {
    return connection.value === 'loading' ? null : (
      <Empty title={`There is no cluster ${name} of this tenant.`}>
        <a href={hrefOf('clusters')}>All clusters</a>
      </Empty>
    );
  }
  const own = [...peerings.value.values()].filter((peering) => takesPart(name, peering));
  const [tone, word] = clusterTone(cluster);
  return (
    <>
      <div class="head">
        <h1>{name}</h1>
        <State tone={tone}>{word}</State>
        <div class="actions">{cluster.state === 'joined' && can('clusters:remove') && <Remove name={name} />}</div>
      </div>
      <div class="two">
        <ClusterFacts cluster={cluster} />
        <Capacity cluster={cluster} peerings={own} />
      </div>
      <Section title="Peerings">
        <Table
          name={`Peerings of ${name}`}
          rows={own}
          columns={peeringColumns}
          rowKey={({ id }) => id}
          filterFrom={8}
          empty={<Empty title={`${name} has no peering.`} />}
        />
      </Section>
      <Lately name={name} peerings={own} />
      <div class="two">
        <Policies cluster={cluster} />
        <Commands name={name} />
      </div>
      <Timeline subject={`cluster/${name}`} />
    </>
  );
}

/** Each is a request; of more, those through which the most passes. */
const mostLinks = 20;

/** All links of the cluster together, and all that it grants. */
function Lately({ name, peerings: own }: { name: string; peerings: readonly Peering[] }) {
  const live = own.filter(({ phase }) => phase !== 'Gone');
  const rateOf = (peering: Peering): number => linkOf(peering).rate ?? -1;
  const shown = [...live].sort((a, b) => rateOf(b) - rateOf(a)).slice(0, mostLinks);
  const ids = shown.map(({ id }) => id).sort();
  if (ids.length === 0) return null;
  const read = async (span: SpanName): Promise<Measured> => {
    const all = await Promise.all(ids.map((peering) => api.getPeeringSamples({ path: { peering }, query: { span } })));
    const ends = all.map((series, at) => {
      const peering = shown.find(({ id }) => id === ids[at]);
      const isConsumer = peering?.consumer === name;
      const points = (isConsumer ? series.consumer : series.provider) ?? [];
      return { peer: isConsumer ? peering.provider : peering?.consumer, points, grants: isConsumer ? [] : points };
    });
    // Two peerings of a pair have one link.
    const links = [...new Map(ends.map(({ peer, points }) => [peer, points])).values()];
    const grants = together(ends.map(({ grants: each }) => each));
    const [first] = all;
    const span0 = first === undefined ? { from: 0, to: 1, stepMs: 1 } : spanOf(first);
    return { span: span0, charts: chartsOf(together(links), grants, { sent: 'sent', received: 'received' }) };
  };
  return (
    <Charts
      read={read}
      deps={[name, ids.join()]}
      note={`All links of ${name} together: the sum of what passes, the slowest round trip, the highest loss; CPU and memory are what it grants to consumers.${live.length > mostLinks ? ` Of ${live.length} peerings, the ${mostLinks} through which the most passes.` : ''}`}
    />
  );
}

const ClusterFacts = ({ cluster }: { cluster: Cluster }) => (
  <Section title="Facts">
    <Facts
      rows={[
        ['Last seen', <Time key="seen" at={cluster.lastSeenAt} />],
        ['Joined', <Time key="joined" at={cluster.joinedAt} />],
        cluster.leftAt !== undefined && ['Left', <Time key="left" at={cluster.leftAt} />],
        [
          'Labels',
          <EditableLabels
            key="labels"
            of={cluster.labels}
            what={cluster.name}
            mayEdit={can('clusters:label')}
            onSave={async (labels) => {
              const path = { cluster: cluster.name };
              await save({
                from: cluster,
                what: 'the labels',
                fields: (of) => of.labels,
                wanted: labels,
                read: () => api.getCluster({ path }),
                write: (ifVersion) => api.changeCluster({ path, body: { labels } }, { ifVersion }),
                isStale,
              });
              await refreshCluster(cluster.name);
            }}
          />,
        ],
        ['Kubernetes', cluster.kubernetesVersion],
        ['Agent', cluster.agentVersion],
        ['Nodes', cluster.nodes],
        ['API server', cluster.apiServerUrl],
        ['Pod ranges', cluster.podCidrs.join(', ') || 'not known'],
        ['Service ranges', cluster.serviceCidrs.join(', ') || 'not known'],
        [
          'Links',
          cluster.network === undefined ? 'makes none' : `external range ${cluster.network.externalCidrs.join(', ')}`,
        ],
        ['Key', <code key="key">{cluster.keyThumbprint}</code>],
      ]}
    />
  </Section>
);

const live = ({ phase }: Peering): boolean => phase !== 'Gone' && phase !== 'Failed';

export function Capacity({ cluster, peerings: own }: { cluster: Cluster; peerings: readonly Peering[] }) {
  const lent = sumOf(own.filter((p) => p.provider === cluster.name && live(p)).map(({ granted = {} }) => granted));
  const borrowed = sumOf(own.filter((p) => p.consumer === cluster.name && live(p)).map(({ granted = {} }) => granted));
  return (
    <Section title="Capacity">
      <h3>Granted to consumers</h3>
      <Bars part={lent} whole={cluster.allocatable} words="granted" />
      <p class="quiet">What its nodes can hold, and how much of it is granted. Its own pods are not counted.</p>
      <h3>Borrowed from providers</h3>
      <p>{quantities(borrowed, 'nothing')}</p>
    </Section>
  );
}

const Policies = ({ cluster }: { cluster: Cluster }) => (
  <Section title="What it agrees to">
    {cluster.policies.length === 0 && <Empty title="It has no PeeringPolicy: it agrees to nothing." />}
    {cluster.policies.map(({ name, asConsumer, asProvider, tenants }) => (
      <div key={name}>
        <h3>{name}</h3>
        <Facts
          rows={[
            ['Tenants', tenants?.join(', ') ?? 'the own one'],
            ['As consumer', said(asConsumer)],
            ['As provider', said(asProvider)],
            asProvider.enabled && ['Most for one peer', quantities(asProvider.maxResourcesPerPeer)],
            asProvider.enabled && ['Classes', asProvider.classes.join(', ')],
          ]}
        />
      </div>
    ))}
    <p class="quiet">It is changed inside the cluster:</p>
    <Command line="kubectl edit peeringpolicy default" />
  </Section>
);

interface Role {
  readonly enabled: boolean;
  readonly autoAccept: boolean;
  readonly peers: readonly string[];
}
const said = ({ enabled, autoAccept, peers }: Role): string =>
  enabled ? `with ${peers.join(', ')}, ${autoAccept ? 'by itself' : 'when its administrator agrees'}` : 'never';

const Commands = ({ name }: { name: string }) => (
  <Section title="Commands">
    <Command line="isthmus get clusters" />
    <Command line={`isthmus label cluster ${name} tier=gold`} />
    <Command line={`isthmus leave ${name} --kubeconfig ${name}.kubeconfig`} />
  </Section>
);

/** For a cluster that is gone for good: `isthmus leave` takes the agent out of one that runs. */
function Remove({ name }: { name: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Remove
      </button>
      {open && (
        <Confirm
          title={`Remove ${name} from the broker`}
          name={name}
          submit="Remove"
          onClose={() => setOpen(false)}
          onConfirm={async () => {
            await api.deleteCluster({ path: { cluster: name }, query: { force: true } });
            await refreshCluster(name);
          }}
        >
          <p>
            For a cluster that is gone for good: its key is accepted no longer, and all its peerings end as with a dead
            peer. A cluster that runs leaves by a command, which also takes the agent out of it:
          </p>
          <Command line={`isthmus leave ${name} --kubeconfig ${name}.kubeconfig`} />
        </Confirm>
      )}
    </>
  );
}
