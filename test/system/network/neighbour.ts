/** A neighbour without any credential: which ports of nodes, pods and Services take its connection, and what they answer. */

import type { KubeApi } from '#kube/model/types.ts';
import { nodes, pods, services } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { Netns, type NetnsFixture } from '#test/harness/netns.ts';
import { must, run } from '#test/harness/program.ts';
import type { ClusterName, Stage } from '../whole-clusters/stage.ts';
import { type Place, podPlace } from './test-pods.ts';

const highest = 65_535;
const all = Array.from({ length: highest }, (_, i) => i + 1);
/** Of five seconds each. */
const patientLooks = 6;

/** Ports at which anything in that network namespace listens, by its own kernel: no other can take a connection there. */
async function listening({ pid }: Netns): Promise<readonly number[]> {
  const { stdout } = await must('nsenter', ['-t', String(pid), '-n', 'ss', '-Hltn']);
  return [...stdout.matchAll(/^\S+\s+\S+\s+\S+\s+\S+:(\d+)\s/gm)].map(([, port]) => Number(port));
}

interface Walked {
  readonly address: string;
  /** Where the address is. Absent: nowhere, as that of a Service. */
  readonly at?: Netns;
}

/** Open TCP ports, which takes half a minute. */
async function walk(
  from: Netns,
  { address, at }: Walked,
  ports: readonly number[],
  wanted: readonly number[],
): Promise<readonly number[]> {
  const known = [...ports, ...(at === undefined ? [] : await listening(at))];
  const open = [...(await from.openPorts(address, all))];
  // Of thousands of packets at a time some are lost: those that could answer are asked once more, with patience.
  const isSilent = (port: number): boolean => !open.includes(port);
  open.push(...(await from.openPorts(address, [...new Set(known)].filter(isSilent), 5_000)));
  // After such a crowd a link may need a while until it carries the next packet.
  for (let more = 0; more < patientLooks && wanted.some(isSilent); more += 1)
    open.push(...(await from.openPorts(address, wanted.filter(isSilent), 5_000)));
  return open.sort((a, b) => a - b);
}

/** Of Services: at their own addresses, and at those of nodes. */
async function portsOfServices(api: KubeApi): Promise<{ readonly own: number[]; readonly node: number[] }> {
  const ports = (await api.list(services)).flatMap(({ spec }) => spec?.ports ?? []);
  const tcp = ports.filter(({ protocol = 'TCP' }) => protocol === 'TCP');
  return { own: tcp.map(({ port }) => port), node: tcp.flatMap(({ nodePort }) => nodePort ?? []) };
}

const paths = ['/', '/healthz', '/readyz', '/metrics', '/pods', '/exec/a/b/c', '/validate/pods', '/certificate'];

/** Paths that a request without any credential gets an answer below 400 for; the certificate of a server is not looked at. */
async function answered(from: Netns, address: string, port: number): Promise<readonly string[]> {
  const found: string[] = [];
  for (const scheme of ['http', 'https'])
    for (const path of paths) {
      const curl = [
        'curl',
        '-sk',
        '-m',
        '5',
        '-o',
        '/dev/null',
        '-w',
        '%{http_code}',
        `${scheme}://${address}:${port}${path}`,
      ];
      const status = Number((await run('nsenter', ['-t', String(from.pid), '-n', ...curl])).stdout);
      if (status > 0 && status < 400) found.push(path);
    }
  return found;
}

export interface Ground {
  readonly stage: Stage;
  readonly clusters: NetnsFixture;
  readonly nodes: Readonly<Record<ClusterName, readonly Place[]>>;
  readonly pods: Readonly<Record<ClusterName, readonly Place[]>>;
  /** The active one of rome. */
  readonly gateway: Place;
  /** What each cluster calls the pods of the other. */
  readonly view: (ip: string) => string;
  /** Port of the tests' own server in each pod. */
  readonly served: number;
}

/** One of the agents of a cluster; of several, the one with that IP: only the leader serves the kubelet's port. */
async function agentOf({ stage, clusters }: Ground, cluster: ClusterName, ip?: string): Promise<Place> {
  const labelSelector = 'app.kubernetes.io/component=controller-manager';
  const agents = await stage.api(cluster).list(pods, { namespace: 'liqo', labelSelector });
  const found = agents.find(({ status }) => ip === undefined || status?.podIP === ip);
  if (found === undefined) throw new Error(`${cluster} has no agent${ip === undefined ? '' : ` with the IP ${ip}`}`);
  return podPlace(clusters, found as Pod);
}

/** As milan calls a node of rome, where that one has an address for peers. */
async function viewOfNode({ stage }: Ground, node: Place): Promise<string> {
  const [link] = await stage.api('milan').list(networkKinds.configurations, { namespace: 'liqo-tenant-rome' });
  const exposed = await stage.api('rome').get(networkKinds.ips, { namespace: 'liqo', name: `node-${node.name}` });
  const outer = link?.status?.remote?.cidr?.external?.[0]?.split('.').slice(0, 2);
  const inner = exposed?.status?.ip?.split('.').slice(2);
  if (outer === undefined || inner === undefined) throw new Error(`${node.name} has no address for peers`);
  return [...outer, ...inner].join('.');
}

export interface Visit {
  /** Open ports that are not for that neighbour, and ports that should be open and are not. */
  readonly strays: readonly string[];
  readonly missing: readonly string[];
  /** Of the ports of agents: those that tell anything, and the paths. */
  readonly told: readonly (readonly [port: string, paths: readonly string[]])[];
  /** Ports of WireGuard and the overlay that answered a packet without a key, or from another address than a node's. */
  readonly answered: readonly string[];
}

/** Rome is the consumer of milan, with pods there; the neighbour is a host beside them, a pod of rome, and pods of either as the other's peer. */
export async function visit(ground: Ground): Promise<Visit> {
  const { stage, gateway, view } = ground;
  const [romeNode, milanNode] = [ground.nodes.rome[0]!, ground.nodes.milan[0]!];
  const [inRome, inMilan] = [ground.pods.rome[1]!, ground.pods.milan[1]!];
  const host = new Netns(ground.clusters, 'a host beside the clusters', process.pid);
  const [romePorts, milanPorts] = [await portsOfServices(stage.api('rome')), await portsOfServices(stage.api('milan'))];
  const virtual = await stage.api('rome').get(nodes, { name: 'milan' });
  const kubelet = virtual?.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  const leader = virtual?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
  const [ofRome, ofMilan] = [await agentOf(ground, 'rome', leader), await agentOf(ground, 'milan')];
  const at = (to: Place, address = to.ip): Walked => ({ address, at: to.netns });
  const ofKubernetes = [6_443, 10_250, 10_256];
  const ports = [...romePorts.own, ...romePorts.node, ...milanPorts.own, ...milanPorts.node];
  /** Ports that are open, and those that may be: the proxy of a provider listens while a consumer has credentials. */
  const rows: [string, Netns, Walked, number[], number[]?][] = [
    ['a host to a node of rome', host, at(romeNode), ofKubernetes, romePorts.node],
    ['a host to a node of milan', host, at(milanNode), ofKubernetes, milanPorts.node],
    ['a pod to a node', inRome.netns, at(romeNode), ofKubernetes, romePorts.node],
    ['a pod to the agent', inRome.netns, at(ofRome), [8_080, 9_443, kubelet]],
    ['a pod to a gateway', inRome.netns, at(gateway), []],
    ['a peer to the agent', inMilan.netns, at(ofRome, view(ofRome.ip)), [8_080, 9_443, kubelet]],
    ['a peer to the agent of a provider', inRome.netns, at(ofMilan, view(ofMilan.ip)), [8_080, 9_443], [8_118]],
    ['a peer to a gateway', inMilan.netns, at(gateway, view(gateway.ip)), []],
    ['a peer to a node', inMilan.netns, at(romeNode, await viewOfNode(ground, romeNode)), []],
    ['a peer to a pod', inMilan.netns, at(inRome, view(inRome.ip)), [8_080, ground.served]],
  ];
  const ownServices = (await stage.api('rome').list(services, { namespace: 'liqo' })).flatMap(({ metadata, spec }) =>
    spec?.clusterIP === undefined || spec.clusterIP === 'None'
      ? []
      : [[metadata.name, spec.clusterIP, (spec.ports ?? []).map(({ port }) => port)] as const],
  );
  for (const [name, address, own] of ownServices)
    rows.push([`a pod to Service ${name}`, inRome.netns, { address }, [], own]);
  const [strays, missing, told]: [string[], string[], [string, readonly string[]][]] = [[], [], []];
  for (const [name, from, to, wanted, may = []] of rows) {
    const open = await walk(from, to, ports, wanted);
    strays.push(...open.filter((one) => ![...wanted, ...may].includes(one)).map((one) => `${name}: ${one}`));
    missing.push(...wanted.filter((one) => !open.includes(one)).map((one) => `${name}: ${one}`));
    if (!name.includes('the agent')) continue;
    for (const one of open) {
      const paths = await answered(from, to.address, one);
      if (paths.length > 0) told.push([String(one), paths]);
    }
  }
  const datagrams: string[] = [];
  for (const [from, address] of [
    [inRome, gateway.ip],
    [inMilan, view(gateway.ip)],
    [inRome, romeNode.ip],
  ] as const)
    for (const port of [networkPort.wireGuard, networkPort.overlay])
      if ((await from.netns.udp(address, port, { size: 148, timeoutMs: 500 })).answered)
        datagrams.push(`${address}:${port}`);
  return { strays, missing, told, answered: datagrams };
}
