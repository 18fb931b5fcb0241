import { expect, test } from 'vitest';
import type { Cluster, Peering } from '#shared/api-client/broker-api.ts';
import { edgeTone, edgeWidth, graphOf, topologyOf } from './graph.ts';

const cluster = (name: string, over: Partial<Cluster> = {}) =>
  ({ name, state: 'joined', online: true, labels: {}, nodes: 1, allocatable: { cpu: '4' }, ...over }) as Cluster;
const peering = (id: string, consumer: string, provider: string, over: Partial<Peering> = {}) =>
  ({ id, consumer, provider, phase: 'Ready', ...over }) as Peering;
const connected = { state: 'Connected' } as const;

test('the map has joined clusters, peerings that are not gone, and clusters of other tenants under the name of their tenant', () => {
  const across = { side: 'consumer', peerTenant: 'bolt' } as Peering['across'] & object;
  const graph = graphOf(
    [cluster('rome'), cluster('milan', { online: false }), cluster('old', { state: 'left' })],
    [
      peering('pe_1', 'rome', 'milan'),
      peering('pe_2', 'milan', 'rome'),
      peering('pe_3', 'rome', 'milan', { phase: 'Gone' }),
      peering('pe_4', 'rome', 'oslo', { across }),
    ],
  );
  expect(graph.nodes.map(({ id, kind }) => [id, kind])).toEqual([
    ['rome', 'on'],
    ['milan', 'away'],
    ['bolt/oslo', 'foreign'],
  ]);
  expect(graph.edges.map(({ id, from, to, bent }) => [id, from, to, bent])).toEqual([
    ['pe_1', 'rome', 'milan', true],
    ['pe_2', 'milan', 'rome', true],
    ['pe_4', 'rome', 'bolt/oslo', false],
  ]);
});

test.each([
  { phase: 'Ready', link: connected, tone: 'good' },
  { phase: 'Ready', link: { ...connected, rtt: 99 }, tone: 'good' },
  { phase: 'Ready', link: { ...connected, rtt: 100 }, tone: 'slow' },
  { phase: 'Ready', link: { state: 'Error' }, tone: 'bad' },
  { phase: 'Ready', link: { state: 'none' }, tone: 'off' },
  { phase: 'Ready', link: { state: 'Connecting' }, tone: 'busy' },
  { phase: 'Degraded', link: connected, tone: 'warn' },
  { phase: 'Unpeering', link: connected, tone: 'busy' },
  { phase: 'Failed', link: connected, tone: 'bad' },
] as const)('$phase with link $link is drawn as $tone', ({ phase, link, tone }) => {
  expect(edgeTone({ phase }, link)).toBe(tone);
});

test('only what comes or goes moves the map', () => {
  const before = graphOf([cluster('rome'), cluster('milan')], [peering('pe_1', 'rome', 'milan')]);
  const changed = graphOf(
    [cluster('milan', { online: false }), cluster('rome')],
    [peering('pe_1', 'rome', 'milan', { phase: 'Degraded' })],
  );
  const more = graphOf([cluster('rome'), cluster('milan'), cluster('turin')], [peering('pe_1', 'rome', 'milan')]);
  expect(topologyOf(changed)).toBe(topologyOf(before));
  expect(topologyOf(more)).not.toBe(topologyOf(before));
});

test('a link is drawn the wider the more passes through it, as the end says that saw more', () => {
  const rates = [undefined, 9e3, 50e3, 500e3, 5e6, 50e6];
  const widths = rates.map(edgeWidth);
  expect(widths).toEqual([...widths].sort((a, b) => a - b));
  expect(new Set(widths).size).toBe(5);
  const end = (received: number) => ({ status: 'Connected' as const, throughput: { received, sent: 0 } });
  const network = { link: { consumer: end(10), provider: end(50e6) } } as Peering['network'] & object;
  const [edge] = graphOf([cluster('rome'), cluster('milan')], [peering('pe_1', 'rome', 'milan', { network })]).edges;
  expect([edge?.width, edge?.words]).toEqual([widths.at(-1), 'rome → milan, Ready, link Connected, 50 MB/s']);
});
