/** Where the nodes are: d3-force, in slices of a frame so that the page stays usable, from where they were before. */
import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationLinkDatum,
  type SimulationNodeDatum,
} from 'd3-force';
import type { Graph } from '../model/graph.ts';

export interface Place {
  readonly x: number;
  readonly y: number;
}
export type Places = ReadonlyMap<string, Place>;

interface Body extends SimulationNodeDatum {
  readonly id: string;
  readonly radius: number;
}

const sliceMs = 8;
/** Graphs up to this many nodes are laid out at once. */
const fewNodes = 60;
/** Of a large one, a picture is shown while it is still moving. */
const showEveryMs = 400;

/** Calls back with places, at last with the final ones; returns what stops it. */
export function layOut(
  { nodes, edges }: Graph,
  before: Places,
  show: (places: Places, done: boolean) => void,
): () => void {
  const bodies = nodes.map(({ id, radius }): Body => ({ id, radius, ...before.get(id) }));
  const links = edges.map(({ from, to }): SimulationLinkDatum<Body> => ({ source: from, target: to }));
  const many = nodes.length > fewNodes;
  const simulation = forceSimulation(bodies)
    .force(
      'link',
      forceLink<Body, SimulationLinkDatum<Body>>(links)
        .id(({ id }) => id)
        .distance(many ? 90 : 150),
    )
    .force(
      'charge',
      forceManyBody<Body>()
        .strength(many ? -220 : -500)
        .distanceMax(900),
    )
    .force(
      'collide',
      forceCollide<Body>(({ radius }) => radius + (many ? 8 : 26)),
    )
    .force('x', forceX<Body>().strength(0.05))
    .force('y', forceY<Body>().strength(0.07))
    .alpha(before.size > 0 ? 0.4 : 1)
    .alphaDecay(many ? 0.035 : 0.0228)
    .stop();
  const places = (): Places => new Map(bodies.map(({ id, x = 0, y = 0 }) => [id, { x, y }]));
  const isDone = (): boolean => simulation.alpha() < simulation.alphaMin();
  if (!many) {
    while (!isDone()) simulation.tick();
    show(places(), true);
    return () => undefined;
  }
  let shownAt = performance.now();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const slice = (): void => {
    const from = performance.now();
    while (!isDone() && performance.now() - from < sliceMs) simulation.tick();
    if (isDone()) {
      show(places(), true);
      return;
    }
    if (performance.now() - shownAt > showEveryMs) {
      show(places(), false);
      shownAt = performance.now();
    }
    timer = setTimeout(slice, sliceMs);
  };
  timer = setTimeout(slice);
  return () => clearTimeout(timer);
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Around all places, with a margin. */
export function boxOf(places: Places): Box {
  const xs = [...places.values()].map(({ x }) => x);
  const ys = [...places.values()].map(({ y }) => y);
  if (xs.length === 0) return { x: -100, y: -100, width: 200, height: 200 };
  const margin = 60;
  const [left, right] = [Math.min(...xs) - margin, Math.max(...xs) + margin];
  const [top, bottom] = [Math.min(...ys) - margin, Math.max(...ys) + margin];
  return { x: left, y: top, width: right - left, height: bottom - top };
}

/** The line of an edge and its arrow head, which points at the provider. */
export function edgePath(a: Place, b: Place, radius: number, bent: boolean): string {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = Math.hypot(dx, dy) || 1;
  const bend = bent ? Math.min(40, length / 6) : 0;
  const [mx, my] = [(a.x + b.x) / 2 - (dy / length) * bend, (a.y + b.y) / 2 + (dx / length) * bend];
  const angle = Math.atan2(b.y - my, b.x - mx);
  const tip = { x: b.x - Math.cos(angle) * (radius + 2), y: b.y - Math.sin(angle) * (radius + 2) };
  const wing = (turn: number): string =>
    `${(tip.x - 10 * Math.cos(angle + turn)).toFixed(1)} ${(tip.y - 10 * Math.sin(angle + turn)).toFixed(1)}`;
  const at = ({ x, y }: Place): string => `${x.toFixed(1)} ${y.toFixed(1)}`;
  return `M${at(a)}Q${mx.toFixed(1)} ${my.toFixed(1)} ${at(tip)}M${wing(0.45)}L${at(tip)}L${wing(-0.45)}`;
}
