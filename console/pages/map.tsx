/** The map of clusters and peerings, with a panel about what is chosen. */
import { useMemo, useState } from 'preact/hooks';
import { clusters, connection, peerings } from '../data/live.ts';
import { goTo, hrefOf, route } from '../data/route.ts';
import { type Chosen, GraphView } from '../map/graph.tsx';
import { type EdgeTone, graphOf, slowMs } from '../model/graph.ts';
import { linkText, pairOf, toneOf } from '../model/peering.ts';
import { quantities } from '../model/text.ts';
import { Facts, Labels, Section, State, Time } from '../parts/bits.tsx';
import { can } from '../parts/load.ts';
import { Capacity } from './cluster.tsx';
import { clusterTone, NoClusters } from './clusters.tsx';
import { NoPeerings } from './peerings.tsx';

const legend: readonly (readonly [EdgeTone, string])[] = [
  ['good', 'Ready, link connected'],
  ['slow', `round trip of ${slowMs} ms or more, or degraded`],
  ['busy', 'being set up or removed'],
  ['bad', 'failed'],
  ['off', 'Ready without a link'],
];

function chosenOf(args: readonly string[]): Chosen | undefined {
  const [kind, id] = args;
  return (kind === 'cluster' || kind === 'peering') && id !== undefined ? { kind, id } : undefined;
}

export function MapPage() {
  const [filter, setFilter] = useState('');
  const graph = useMemo(
    () => graphOf(clusters.value.values(), peerings.value.values()),
    [clusters.value, peerings.value],
  );
  const chosen = chosenOf(route.value.args);
  if (connection.value === 'loading' && graph.nodes.length === 0) return <h1>Map</h1>;
  return (
    <>
      <div class="head">
        <h1>Map</h1>
        <div class="actions">
          <a href={hrefOf('clusters')}>The same as a table</a>
          {can('clusters:join') && <a href={hrefOf('join')}>Join a cluster</a>}
          {can('peerings:write') && <a href={hrefOf('peer')}>Peer two clusters</a>}
        </div>
      </div>
      {graph.nodes.length === 0 ? (
        <Section title="Begin">
          <NoClusters />
        </Section>
      ) : (
        <div class="map">
          <section class="card" aria-label="Clusters and peerings">
            <div class="filter">
              <label>
                Find
                <input
                  type="search"
                  value={filter}
                  placeholder="names, labels as key=value"
                  onInput={(event) => setFilter(event.currentTarget.value)}
                />
              </label>
            </div>
            <GraphView graph={graph} filter={filter} chosen={chosen} />
            <ul class="legend">
              {legend.map(([tone, words]) => (
                <li key={tone}>
                  <svg viewBox="0 0 40 10" aria-hidden="true" class={`graph-sample tone-${tone}`}>
                    <path class="line" d="M0 5H32M26 1L32 5L26 9" stroke-width="3" fill="none" />
                  </svg>
                  {words}
                </li>
              ))}
              <li>
                An arrow points from consumer to provider; the wider, the more passes through the link: from below 10
                kB/s to above 10 MB/s.
              </li>
            </ul>
            {graph.edges.length === 0 && <NoPeerings />}
          </section>
          {chosen && <Panel chosen={chosen} />}
        </div>
      )}
    </>
  );
}

function Panel({ chosen: { kind, id } }: { chosen: Chosen }) {
  return (
    <aside class="card" aria-label={`About the chosen ${kind}`}>
      <div class="actions">
        <button type="button" class="small" onClick={() => goTo('map')}>
          Close
        </button>
      </div>
      {kind === 'cluster' ? <ClusterPanel name={id} /> : <PeeringPanel id={id} />}
    </aside>
  );
}

function ClusterPanel({ name }: { name: string }) {
  const cluster = clusters.value.get(name);
  if (cluster === undefined) return <p>There is no cluster {name}.</p>;
  const own = [...peerings.value.values()].filter(
    ({ consumer, provider, phase }) => phase !== 'Gone' && (consumer === name || provider === name),
  );
  const [tone, word] = clusterTone(cluster);
  return (
    <>
      <h2>
        <a href={hrefOf('cluster', name)}>{name}</a> <State tone={tone}>{word}</State>
      </h2>
      <Facts
        rows={[
          ['Last seen', <Time key="seen" at={cluster.lastSeenAt} />],
          ['Kubernetes', cluster.kubernetesVersion],
          ['Nodes', cluster.nodes],
          ['Labels', <Labels key="labels" of={cluster.labels} />],
        ]}
      />
      <Capacity cluster={cluster} peerings={own} />
      <h3>Peerings</h3>
      {own.length === 0 ? (
        <p class="quiet">none</p>
      ) : (
        <ul>
          {own.slice(0, 50).map((peering) => (
            <li key={peering.id}>
              <a href={hrefOf('peering', peering.id)}>{pairOf(peering)}</a>{' '}
              <State tone={toneOf(peering)}>{peering.phase}</State>
            </li>
          ))}
          {own.length > 50 && <li>and {own.length - 50} more on its page</li>}
        </ul>
      )}
    </>
  );
}

function PeeringPanel({ id }: { id: string }) {
  const peering = peerings.value.get(id);
  if (peering === undefined) return <p>There is no such peering.</p>;
  return (
    <>
      <h2>
        <a href={hrefOf('peering', id)}>{pairOf(peering)}</a> <State tone={toneOf(peering)}>{peering.phase}</State>
      </h2>
      <Facts
        rows={[
          ['Waiting for', peering.waitingFor],
          ['Link', linkText(peering)],
          ['Asked for', quantities(peering.resources, 'as much as the provider gives')],
          ['Granted', quantities(peering.granted, 'nothing yet')],
          ['Labels', <Labels key="labels" of={peering.labels} />],
        ]}
      />
    </>
  );
}
