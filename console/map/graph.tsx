/** The map itself: an SVG in which every cluster is a link, that can be moved and zoomed by pointer, wheel, fingers and buttons. */
import { select } from 'd3-selection';
import { type ZoomBehavior, type ZoomTransform, zoom, zoomIdentity } from 'd3-zoom';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { hrefOf } from '../data/route.ts';
import { type Graph, type MapEdge, type MapNode, topologyOf } from '../model/graph.ts';
import { type Box, boxOf, edgePath, layOut, type Places } from './layout.ts';

/** Beyond, names show up when the map is zoomed in, pointed at or reached by keyboard. */
const manyNodes = 80;
/** Beyond, only clusters are reached by keyboard: their panels list their peerings. */
const manyEdges = 80;
const nearScale = 1.1;

type Svg = SVGSVGElement;

export interface Chosen {
  readonly kind: 'cluster' | 'peering';
  readonly id: string;
}

export function GraphView({ graph, filter, chosen }: { graph: Graph; filter: string; chosen: Chosen | undefined }) {
  const svg = useRef<Svg>(null);
  const moved = useRef<SVGGElement>(null);
  const behaviour = useRef<ZoomBehavior<Svg, unknown>>(null);
  const [places, setPlaces] = useState<Places>(new Map());
  const [settled, setSettled] = useState(false);
  const topology = topologyOf(graph);
  const latest = useRef<Places>(places);

  useEffect(
    () =>
      layOut(graph, latest.current, (next, done) => {
        const first = latest.current.size === 0 || !done;
        latest.current = next;
        setPlaces(next);
        setSettled(done);
        if ((first || done) && svg.current && behaviour.current) fitInto(svg.current, behaviour.current, boxOf(next));
      }),
    [topology],
  );

  useEffect(() => {
    if (svg.current === null) return;
    const element = svg.current;
    behaviour.current = zoom<Svg, unknown>()
      .scaleExtent([0.05, 6])
      .on('zoom', ({ transform }: { transform: ZoomTransform }) => {
        moved.current?.setAttribute('transform', transform.toString());
        element.classList.toggle('near', transform.k >= nearScale);
      });
    select(element).call(behaviour.current);
    if (latest.current.size > 0) fitInto(element, behaviour.current, boxOf(latest.current));
  }, []);

  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const nodesById = useMemo(() => new Map(graph.nodes.map((node) => [node.id, node])), [graph]);
  const found = useMemo(
    () => new Set(graph.nodes.filter(({ text }) => words.every((word) => text.includes(word))).map(({ id }) => id)),
    [graph, filter],
  );
  // The same elements as long as nothing of them changed: choosing one does not draw the others again.
  const edges = useMemo(
    () =>
      graph.edges.map((edge) => (
        <Edge
          key={edge.id}
          edge={edge}
          places={places}
          target={nodesById.get(edge.to)}
          many={graph.edges.length > manyEdges}
        />
      )),
    [graph, places],
  );
  const nodes = useMemo(
    () => graph.nodes.map((node) => <Node key={node.id} node={node} places={places} />),
    [graph, places],
  );
  // Thousands of elements get or lose one class; drawing them again would take longer than a reader types.
  useEffect(() => {
    if (svg.current === null) return;
    const isFound = (ids: readonly string[]): boolean => words.length === 0 || ids.some((id) => found.has(id));
    for (const element of svg.current.querySelectorAll('a[data-ends]')) {
      element.classList.toggle('faint', !isFound((element.getAttribute('data-ends') ?? '').split(' ')));
    }
  }, [found, nodes, edges]);
  useEffect(() => {
    const element = chosen && svg.current?.querySelector(`[data-id="${CSS.escape(chosen.id)}"]`);
    element?.classList.add('chosen');
    return () => element?.classList.remove('chosen');
  }, [chosen?.id, edges, nodes]);

  const scaleBy = (factor: number): void => {
    if (svg.current && behaviour.current) select(svg.current).call(behaviour.current.scaleBy, factor);
  };
  return (
    <div>
      <div class="actions">
        <button type="button" class="small" onClick={() => scaleBy(1.4)}>
          Closer
        </button>
        <button type="button" class="small" onClick={() => scaleBy(1 / 1.4)}>
          Farther
        </button>
        <button
          type="button"
          class="small"
          onClick={() => svg.current && behaviour.current && fitInto(svg.current, behaviour.current, boxOf(places))}
        >
          Everything
        </button>
        <span class="quiet" role="status">
          {counted(graph.nodes.length, 'cluster')}, {counted(graph.edges.length, 'peering')}
          {settled ? '' : ', being laid out'}
          {words.length > 0 && `, ${found.size} found`}
        </span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: HTML has no element for a group inside a picture */}
      <svg
        ref={svg}
        class={graph.nodes.length > manyNodes ? 'graph many' : 'graph'}
        role="group"
        aria-label="Map of clusters and peerings"
        data-settled={settled ? 'yes' : 'no'}
      >
        <title>Map of clusters and peerings</title>
        <g ref={moved}>
          <g>{edges}</g>
          <g>{nodes}</g>
        </g>
      </svg>
    </div>
  );
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

function fitInto(element: Svg, behaviour: ZoomBehavior<Svg, unknown>, box: Box): void {
  const { width, height } = element.getBoundingClientRect();
  if (width === 0 || height === 0) return;
  const scale = Math.min(width / box.width, height / box.height, 1.6);
  const transform = zoomIdentity
    .translate(width / 2, height / 2)
    .scale(scale)
    .translate(-(box.x + box.width / 2), -(box.y + box.height / 2));
  select(element).call(behaviour.transform, transform);
}

interface EdgeProps {
  readonly edge: MapEdge;
  readonly places: Places;
  readonly target: MapNode | undefined;
  readonly many: boolean;
}

function Edge({ edge, places, target, many }: EdgeProps) {
  const [a, b] = [places.get(edge.from), places.get(edge.to)];
  if (a === undefined || b === undefined) return null;
  const path = edgePath(a, b, target?.radius ?? 9, edge.bent);
  return (
    <a
      class={`edge tone-${edge.tone}`}
      href={hrefOf('map', 'peering', edge.id)}
      data-id={edge.id}
      data-ends={`${edge.from} ${edge.to}`}
      aria-label={edge.words}
      tabIndex={many ? -1 : 0}
    >
      {!many && <path class="wide" d={path} />}
      <path class="line" d={path} stroke-width={many ? edge.width / 2 : edge.width} />
    </a>
  );
}

function Node({ node, places }: { node: MapNode; places: Places }) {
  const place = places.get(node.id);
  if (place === undefined) return null;
  const href = node.kind === 'foreign' ? hrefOf('map') : hrefOf('map', 'cluster', node.id);
  return (
    <g transform={`translate(${place.x.toFixed(1)},${place.y.toFixed(1)})`}>
      <a href={href} class="node" data-id={node.id} data-ends={node.id} aria-label={node.words}>
        <circle class={node.kind} r={node.radius} />
        <text y={node.radius + 14}>{node.id}</text>
      </a>
    </g>
  );
}
