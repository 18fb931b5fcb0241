/** Which probes make up the matrix (docs/design/networking.md#what-does-the-network-test-probe), what each should see, and the further ones that only tell why others failed. Pure. */
import { moveAddress } from '#shared/domain/cidr.ts';
import { type Probe, probePort } from '#shared/domain/network-probe.ts';
import type { What } from './evidence.ts';
import type { Side } from './side.ts';

export interface TestPod {
  readonly name: string;
  readonly node: string;
  readonly ip: string;
  /** In its node's network. */
  readonly host: boolean;
}

export interface TestSide {
  readonly side: Side;
  readonly pods: readonly TestPod[];
  /** Service with the peer's pods behind it. */
  readonly service?: { readonly clusterIp: string; readonly nodePort?: number };
  /** The host outside: its own address and port, and what its IP object was granted. */
  readonly external?: { readonly ip: string; readonly port: number; readonly exposed?: string };
}

/** What asked: a test pod, or this machine. */
type Asker = { readonly cluster: string; readonly pod: TestPod } | 'here';

export interface Row {
  readonly id: string;
  readonly what: What;
  readonly by: Asker;
  /** Cluster and node from which the packets go to the peer; for NodePorts the node that is called. */
  readonly from: { readonly cluster: string; readonly node: string };
  /** Cluster of the called pod; its node when the target is one pod. */
  readonly to: { readonly cluster: string; readonly node?: string; readonly pod?: string };
  readonly address: string;
  readonly probes: readonly Probe[];
  /** Sources that the receiver may see; empty: any. */
  readonly sources: readonly string[];
}

/** Evidence: probes inside one cluster. */
export interface Inner {
  readonly id: string;
  readonly by: Exclude<Asker, 'here'>;
  readonly probe: Probe;
}

export interface Matrix {
  readonly rows: readonly Row[];
  readonly inner: readonly Inner[];
}

export interface MatrixOptions {
  readonly basic: boolean;
  readonly nodePort: boolean;
}

/** What `side` calls a real address of its peer; undefined when it knows no range that holds it. */
export function viewOf(side: Side, address: string): string | undefined {
  for (const { real, view } of side.ranges?.views ?? []) {
    const moved = moveAddress(address, real, view);
    if (moved !== undefined) return moved;
  }
  return undefined;
}

const get = (id: string, address: string, port: number = probePort): Probe => ({
  kind: 'http',
  id,
  url: `http://${address}:${port}/`,
  large: false,
  times: 1,
});
const largeId = (id: string): string => `${id}+large`;
const mostConnections = 10;

export const ids = {
  leg: (cluster: string, node: string, size: 'small' | 'large'): string => `leg/${cluster}/${node}/${size}`,
  local: (cluster: string, pod: string, from: string): string => `local/${cluster}/${pod}/${from}`,
  localHost: (cluster: string, from: string): string => `local-host/${cluster}/${from}`,
  large: largeId,
};

export function matrixOf(a: TestSide, b: TestSide, options: MatrixOptions): Matrix {
  const directions = [
    [a, b],
    [b, a],
  ] as const;
  return {
    rows: directions.flatMap(([from, to]) => rowsFrom(from, to, options)),
    inner: [a, b].flatMap((side) => [...legs(side), ...locals(side)]),
  };
}

const network = ({ pods }: TestSide): readonly TestPod[] => pods.filter(({ host }) => !host);
const hosts = ({ pods }: TestSide): readonly TestPod[] => pods.filter(({ host }) => host);

function rowsFrom(from: TestSide, to: TestSide, { basic, nodePort }: MatrixOptions): Row[] {
  const direct = (what: 'pod-to-pod' | 'node-to-pod', callers: readonly TestPod[]): Row[] =>
    callers.flatMap((pod) => network(to).map((target) => directRow(what, { from, to, pod, target })));
  const rows = direct('pod-to-pod', network(from));
  if (basic) return rows;
  return [
    ...rows,
    ...serviceRows(from, to),
    ...direct('node-to-pod', hosts(from)),
    ...(nodePort ? nodePortRows(from, to) : []),
    ...externalRows(from, to),
  ];
}

interface Pair {
  readonly from: TestSide;
  readonly to: TestSide;
  readonly pod: TestPod;
  readonly target: TestPod;
}

function directRow(what: 'pod-to-pod' | 'node-to-pod', { from, to, pod, target }: Pair): Row {
  const [here, there] = [from.side.cluster, to.side.cluster];
  const id = `${what}/${here}/${pod.node}/${there}/${target.node}`;
  const address = viewOf(from.side, target.ip) ?? '';
  const probes = address === '' ? [] : [get(id, address)];
  const large: Probe[] =
    what === 'node-to-pod' || address === ''
      ? []
      : [{ kind: 'http', id: largeId(id), url: `http://${address}:${probePort}/`, large: true, times: 1 }];
  return {
    id,
    what,
    by: { cluster: here, pod },
    from: { cluster: here, node: pod.node },
    to: { cluster: there, node: target.node, pod: target.name },
    address,
    probes: [...probes, ...large],
    sources: expectedSources(from.side, to.side, pod),
  };
}

/** Pods by their own address as the receiver's cluster calls it, nodes by the address that is theirs alone. Full masquerade: all by the node's. */
function expectedSources(from: Side, to: Side, pod: TestPod): string[] {
  const exposed = from.nodes.find(({ name }) => name === pod.node)?.exposed;
  const node = exposed === undefined ? undefined : viewOf(to, exposed);
  const own = viewOf(to, pod.ip);
  if (pod.host || from.fullMasquerade === 'true') return node === undefined ? [] : [node];
  return [own, from.fullMasquerade === 'auto' ? node : undefined].flatMap((address) => address ?? []);
}

function serviceRows(from: TestSide, to: TestSide): Row[] {
  const { service, side } = from;
  if (service === undefined) return [];
  const times = Math.min(2 * network(to).length, mostConnections);
  return network(from).map((pod) => {
    const id = `pod-to-service/${side.cluster}/${pod.node}`;
    const url = `http://${service.clusterIp}:${probePort}/`;
    return {
      id,
      what: 'pod-to-service',
      by: { cluster: side.cluster, pod },
      from: { cluster: side.cluster, node: pod.node },
      to: { cluster: to.side.cluster },
      address: service.clusterIp,
      probes: [{ kind: 'http', id, url, large: false, times }],
      sources: expectedSources(side, to.side, pod),
    };
  });
}

function nodePortRows(from: TestSide, to: TestSide): Row[] {
  const { side, service } = from;
  const port = service?.nodePort;
  if (port === undefined) return [];
  const askers: { readonly what: What; readonly name: string; readonly by: Asker }[] = [
    ...network(from).map((pod) => ({
      what: 'pod-to-nodeport' as const,
      name: pod.node,
      by: { cluster: side.cluster, pod },
    })),
    { what: 'outside-to-nodeport', name: 'here', by: 'here' },
  ];
  return askers.flatMap(({ what, name, by }) =>
    side.nodes
      .filter(({ address, ready }) => ready && address !== '')
      .map((node): Row => {
        const id = `${what}/${side.cluster}/${name}/${node.name}`;
        return {
          id,
          what,
          by,
          from: { cluster: side.cluster, node: node.name },
          to: { cluster: to.side.cluster },
          address: `${node.address}:${port}`,
          probes: [get(id, node.address, port)],
          sources: [],
        };
      }),
  );
}

function externalRows(from: TestSide, to: TestSide): Row[] {
  const { external } = to;
  if (external === undefined) return [];
  const view = external.exposed === undefined ? '' : (viewOf(from.side, external.exposed) ?? '');
  return network(from).map((pod) => {
    const id = `pod-to-external/${from.side.cluster}/${pod.node}`;
    return {
      id,
      what: 'pod-to-external',
      by: { cluster: from.side.cluster, pod },
      from: { cluster: from.side.cluster, node: pod.node },
      to: { cluster: to.side.cluster },
      address: view === '' ? '' : `${view}:${external.port}`,
      probes: view === '' ? [] : [get(id, view, external.port)],
      sources: [],
    };
  });
}

/** From each node to the overlay address of its cluster's gateway, once with as many bytes as the link takes. */
export function legs({ side, pods }: TestSide): Inner[] {
  const { fabric, cluster } = side;
  if (fabric === undefined) return [];
  return pods
    .filter(({ host }) => host)
    .flatMap((pod) =>
      (['small', 'large'] as const).map((size) => {
        const id = ids.leg(cluster, pod.node, size);
        const bytes = size === 'small' ? 84 : fabric.mtu;
        return { id, by: { cluster, pod }, probe: { kind: 'ping', id, address: fabric.address, bytes } };
      }),
    );
}

/** Do pods and the host outside answer their own cluster? Asked from the pod's node and from that of the gateway. */
function locals(test: TestSide): Inner[] {
  const { cluster, activeNode } = test.side;
  const near = (node: string | undefined) => hosts(test).filter((pod) => pod.node === node || pod.node === activeNode);
  const ofPods = network(test).flatMap((target) =>
    near(target.node).map((pod): Inner => {
      const id = ids.local(cluster, target.name, pod.node);
      return { id, by: { cluster, pod }, probe: get(id, target.ip) };
    }),
  );
  const { external } = test;
  if (external === undefined) return ofPods;
  return [
    ...ofPods,
    ...near(activeNode).map((pod): Inner => {
      const id = ids.localHost(cluster, pod.node);
      return { id, by: { cluster, pod }, probe: get(id, external.ip, external.port) };
    }),
  ];
}
