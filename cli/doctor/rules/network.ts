/** What is wrong between the nodes, the gateways and the two ends of a link. Pure. */

import { label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName, nodeProcessLabel } from '#shared/domain/network-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { Finding } from '../causes.ts';
import type { GatewaySight, LinkObjects } from '../facts.ts';
import { conditionOf, isReady, labelOf, nameOf, type Rule, some, type View } from './rule.ts';

/** Beyond this, a table drops what is new now and then. */
const fullShare = 0.95;

export const connectionTables: Rule = ({ cluster, facts }) => {
  const full = facts.sights.flatMap(({ node, connections }) =>
    connections !== undefined && connections.count >= fullShare * connections.most ? [{ node, ...connections }] : [],
  );
  const [first] = full;
  if (first === undefined) return [];
  return [
    {
      code: 'conntrack_full',
      at: cluster,
      text: `the connection table of node ${first.node} of ${cluster} is full: ${first.count} of ${first.most}`,
      evidence: full.map(({ node, count, most }) => `${node}: nf_conntrack_count ${count}, nf_conntrack_max ${most}`),
      todo: `on the node: \`sysctl -w net.netfilter.nf_conntrack_max=${first.most * 2}\`, then find what opens that many (\`conntrack -S\`, \`conntrack -L\`)`,
    },
  ];
};

export const nodeProcesses: Rule = ({ cluster, facts, kubectl }) => {
  if (facts.nodeProcess === undefined) return [];
  // Where the agent does the work of its node, why it does not run is told by its own causes.
  const isShared = (facts.nodeProcess.status?.desiredNumberScheduled ?? 0) === 0;
  if (isShared && (facts.status.agent?.status?.readyReplicas ?? 0) === 0) return [];
  const served = new Set(
    facts.ownPods
      .filter((pod) => labelOf(pod, nodeProcessLabel) !== undefined && isReady(pod))
      .map(({ spec }) => spec?.nodeName),
  );
  const without = facts.nodes.filter(
    (node) => isReady(node) && labelOf(node, 'kubernetes.io/os') !== 'windows' && !served.has(node.metadata.name),
  );
  const [first] = without;
  if (first === undefined) return [];
  return [
    {
      code: 'node_process_missing',
      at: cluster,
      text: `no node process runs on ${some(without.map(nameOf))} of ${cluster}: pods there reach no peer`,
      evidence: [
        `DaemonSet ${systemNamespace}/${fabricName}: ${facts.nodeProcess.status?.numberReady ?? 0} of ${facts.nodeProcess.status?.desiredNumberScheduled ?? 0} ready`,
      ],
      todo: `\`${kubectl} --namespace ${systemNamespace} get pods --output wide --selector ${nodeProcessLabel}\`, then describe the pod on ${first.metadata.name}, or the DaemonSet when there is none`,
    },
  ];
};

interface OfPeer {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}
const ofPeer = <T extends OfPeer>(all: readonly T[], peer: string): T | undefined =>
  all.find(({ metadata }) => metadata.labels?.[label.remoteClusterId] === peer);

/** Peers with which there is, or should be, a link. */
const linked = ({ facts, all }: View): string[] => {
  const { configurations, servers, clients } = facts.link;
  const peers = [...configurations, ...servers, ...clients].flatMap(
    ({ metadata }) => metadata.labels?.[label.remoteClusterId] ?? [],
  );
  return [...new Set(peers)].filter((peer) => all.peer === undefined || peer === all.peer || all.clusters.length > 1);
};

export const ranges: Rule = (view) => {
  const { cluster, facts, kubectl } = view;
  const peers = new Set(linked(view));
  const refused = facts.link.configurations.flatMap((configuration) => {
    const peer = labelOf(configuration, label.remoteClusterId) ?? '';
    const bad = (configuration.status?.conditions ?? []).find(
      ({ status, reason }) => status === 'False' && !/Waiting|Pending/.test(reason ?? ''),
    );
    return bad === undefined || !peers.has(peer) ? [] : [{ configuration, peer, bad }];
  });
  const [first] = refused;
  if (first === undefined) return [];
  return [
    {
      code: 'ranges_refused',
      at: cluster,
      text: `the ranges of ${first.peer} have no place in ${cluster}: ${first.bad.message ?? first.bad.reason ?? 'no reason is given'}`,
      evidence: refused.map(
        ({ configuration, bad }) => `Configuration ${nameOf(configuration)}: ${bad.reason ?? bad.type}`,
      ),
      todo: `correct the ranges or free some: \`${kubectl} get networks.ipam.liqo.io,configurations.networking.liqo.io --all-namespaces\``,
    },
  ];
};

export const gateways: Rule = (view) => {
  const { cluster, facts, kubectl } = view;
  const findings: Finding[] = [];
  for (const peer of linked(view)) {
    const gateway = ofPeer(facts.link.servers, peer) ?? ofPeer(facts.link.clients, peer);
    if (gateway === undefined) {
      findings.push({
        code: 'gateway_missing',
        at: cluster,
        text: `${cluster} has no gateway for ${peer}`,
        evidence: [`there is a Configuration for ${peer}, and neither a GatewayServer nor a GatewayClient`],
        todo: `create one (docs/gateways.md), or peer again with \`isthmus peer\`, which makes both ends`,
      });
      continue;
    }
    const { namespace = '' } = gateway.metadata;
    const pods = facts.ownPods.filter((pod) => pod.metadata.namespace === namespace);
    if (pods.some(isReady)) continue;
    const said = conditionOf(gateway, 'Ready');
    findings.push({
      code: 'gateway_down',
      at: cluster,
      text: `the gateway of ${cluster} for ${peer} has no pod that runs`,
      evidence: [
        `${gateway.kind} ${nameOf(gateway)}: ${said?.message ?? 'it says nothing'}`,
        pods.length === 0 ? `namespace ${namespace} has no gateway pod` : `pods: ${some(pods.map(nameOf))}`,
      ],
      todo: `\`${kubectl} --namespace ${namespace} describe deployments,pods\``,
    });
  }
  return findings;
};

const isUp = (connection: Connection | undefined): boolean => connection?.status?.value === 'Connected';
/** While packets flow, WireGuard makes new keys every two minutes, and gives a session up after three. */
const freshMs = 180_000;

const handshakeAge = (connection: Connection | undefined, now: number): number | undefined => {
  const at = Date.parse(connection?.status?.lastHandshakeTime ?? '');
  return Number.isNaN(at) ? undefined : now - at;
};

const said = (cluster: string, connection: Connection | undefined, now: number): string => {
  const age = handshakeAge(connection, now);
  const shaken = age === undefined ? 'no handshake yet' : `last handshake ${Math.round(age / 1_000)} s ago`;
  const loss = connection?.status?.packetLoss;
  return `${cluster}: ${connection?.status?.value ?? 'no Connection'}, ${shaken}${loss ? `, ${loss} % of the pings lost` : ''}`;
};

interface Ends {
  readonly view: View;
  readonly peer: string;
  readonly mine: Connection | undefined;
  /** Undefined: the other cluster was not looked at. */
  readonly theirLink: LinkObjects | undefined;
  readonly theirs: Connection | undefined;
}

const wrongKey = ({ view, peer, theirLink }: Ends): Finding | undefined => {
  const { cluster, facts, kubectl } = view;
  const expected = ofPeer(facts.link.publicKeys, peer);
  const actual = ownMember(theirLink?.ownKeys, cluster);
  if (expected === undefined || actual === undefined || expected.spec.publicKey === actual) return undefined;
  return {
    code: 'link_keys',
    at: cluster,
    text: `${cluster} expects another WireGuard key of ${peer} than the gateway there has`,
    evidence: [
      `PublicKey ${nameOf(expected)} of ${cluster}: ${expected.spec.publicKey}`,
      `gateway of ${peer}: ${actual}`,
    ],
    todo: `\`${kubectl} --namespace ${expected.metadata.namespace} patch publickey ${expected.metadata.name} --type merge --patch '{"spec":{"publicKey":"${actual}"}}'\``,
  };
};

interface Endpoint {
  readonly addresses?: readonly string[] | undefined;
  readonly port?: number | undefined;
  readonly ports?: readonly number[] | undefined;
}
const portsOf = ({ port, ports }: Endpoint): readonly number[] => ports ?? (port === undefined ? [] : [port]);

/** The end that dials, against where the other listens. */
const wrongEndpoint = ({ view, peer, theirLink }: Ends): Finding | undefined => {
  const { cluster, facts, kubectl } = view;
  const client = ofPeer(facts.link.clients, peer);
  const server = theirLink === undefined ? undefined : ofPeer(theirLink.servers, cluster);
  const [dialled, listens] = [client?.spec.endpoint, server?.status?.endpoint];
  if (client === undefined || dialled === undefined || listens === undefined) return undefined;
  const known = new Set(listens.addresses ?? []);
  const ports = new Set(portsOf(listens));
  const isSame =
    portsOf(dialled).some((port) => ports.has(port)) && (dialled.addresses ?? []).some((address) => known.has(address));
  if (isSame || known.size === 0 || ports.size === 0) return undefined;
  const text = (endpoint: Endpoint): string =>
    `${(endpoint.addresses ?? []).join(', ')} UDP ${portsOf(endpoint).join(', ')}`;
  const port = listens.ports === undefined ? { port: listens.port } : { ports: listens.ports };
  const patch = JSON.stringify({ spec: { endpoint: { addresses: listens.addresses, ...port } } });
  return {
    code: 'link_endpoint',
    at: cluster,
    text: `${cluster} dials ${peer} at ${text(dialled)}, and the gateway there listens at ${text(listens)}`,
    evidence: [
      `GatewayClient ${nameOf(client)} of ${cluster}: ${text(dialled)}`,
      `GatewayServer of ${peer}: ${text(listens)}`,
    ],
    todo: `\`${kubectl} --namespace ${client.metadata.namespace} patch gatewayclient ${client.metadata.name} --type merge --patch '${patch}'\``,
  };
};

export const links: Rule = (view) => {
  const { cluster, facts, other, all } = view;
  return linked(view).flatMap((peer): Finding[] => {
    const theirLink = other !== undefined && other.cluster === peer ? other.facts.link : undefined;
    const mine = ofPeer(facts.link.connections, peer);
    const theirs = theirLink === undefined ? undefined : ofPeer(theirLink.connections, cluster);
    const ends = { view, peer, mine, theirLink, theirs };
    const gateway = ofPeer(facts.link.servers, peer) ?? ofPeer(facts.link.clients, peer);
    if (gateway === undefined) return [];
    if (isUp(mine) && (theirLink === undefined || isUp(theirs))) return lossOf(ends);
    const exact = [wrongKey(ends), wrongEndpoint(ends)].flatMap((found) => found ?? []);
    if (exact.length > 0) return exact;
    // Told once for both ends: by the consumer's side, which comes first.
    if (theirLink !== undefined && all.clusters[0]?.cluster !== cluster) return [];
    return [noPackets(ends)];
  });
};

const sightOf = (view: View, which: 'mine' | 'theirs', peer: string) =>
  which === 'mine'
    ? view.facts.gatewaySights.find((sight) => sight.peer === peer)
    : view.other?.cluster === peer
      ? view.other.facts.gatewaySights.find((sight) => sight.peer === view.cluster)
      : undefined;

/** Both ends send, and one of them hears the other. */
function deafEnd(view: View, peer: string): string | undefined {
  const [mine, theirs] = [sightOf(view, 'mine', peer), sightOf(view, 'theirs', peer)];
  if (mine === undefined || theirs === undefined || mine.sent === 0 || theirs.sent === 0) return undefined;
  const [iHear, theyHear] = [hears(mine), hears(theirs)];
  if (iHear === theyHear) return undefined;
  return iHear ? peer : view.cluster;
}

const hears = ({ received, strays }: GatewaySight): boolean => received > 0 || strays > 0;

const bytes = (view: View, peer: string): string[] =>
  (['mine', 'theirs'] as const).flatMap((which) => {
    const sight = sightOf(view, which, peer);
    const name = which === 'mine' ? view.cluster : peer;
    return sight === undefined
      ? []
      : [
          `gateway of ${name}: ${sight.sent} bytes sent, ${sight.received} received within 6 s${sight.strays > 0 ? `, ${sight.strays} packets at a port that it has left` : ''}`,
        ];
  });

function noPackets({ view, peer, mine, theirLink, theirs }: Ends): Finding {
  const { cluster, facts, all, kubectl } = view;
  const evidence = [said(cluster, mine, all.now), ...(theirLink === undefined ? [] : [said(peer, theirs, all.now)])];
  const client = ofPeer(facts.link.clients, peer) ?? (theirLink && ofPeer(theirLink.clients, cluster));
  const dialled: Endpoint = client?.spec.endpoint ?? {};
  const where =
    portsOf(dialled).length === 0
      ? 'the endpoint of the gateway that listens'
      : `UDP ${portsOf(dialled).join(', ')} at ${(dialled.addresses ?? []).join(', ')}`;
  const ages = [handshakeAge(mine, all.now), handshakeAge(theirs, all.now)].filter((age) => age !== undefined);
  const fresh = ages.some((age) => age < freshMs);
  const deaf = deafEnd(view, peer);
  if (deaf !== undefined) {
    const from = deaf === cluster ? peer : cluster;
    return {
      code: 'link_one_way',
      at: cluster,
      text: `packets pass between the gateways of ${cluster} and ${peer} in one direction only: none arrives in ${deaf}`,
      evidence: [...evidence, ...bytes(view, peer)],
      todo: `let UDP from ${from} pass to ${deaf}, at ${where} and back (firewalls, security groups, a NAT that lost its mapping)`,
    };
  }
  return {
    code: 'link_silent',
    at: cluster,
    text: `no packets pass between the gateways of ${cluster} and ${peer}${fresh ? ' any more' : ''}`,
    evidence: [...evidence, ...bytes(view, peer)],
    todo: `let ${client === undefined ? 'the end that dials' : 'the dialling gateway'} reach ${where}, both ways (firewalls, security groups, NAT); \`${kubectl} get connections.networking.liqo.io --all-namespaces\` shows when it is up`,
  };
}

/** In percent; single pings get lost everywhere. */
const notableLoss = 10;

function lossOf({ view, peer, mine, theirLink, theirs }: Ends): Finding[] {
  const { cluster, all } = view;
  if (theirLink !== undefined && all.clusters[0]?.cluster !== cluster) return [];
  const loss = Math.max(mine?.status?.packetLoss ?? 0, theirs?.status?.packetLoss ?? 0);
  if (loss < notableLoss) return [];
  return [
    {
      code: 'link_lossy',
      at: cluster,
      text: `${loss} % of the packets between the gateways of ${cluster} and ${peer} are lost`,
      evidence: [said(cluster, mine, all.now), ...(theirLink === undefined ? [] : [said(peer, theirs, all.now)])],
      todo: `look at the line between the two: \`mtr\` or \`ping\` between the nodes of the gateways, and load and rate limits on the way`,
    },
  ];
}

/** What a network test found beyond all this. */
export const probes: Rule = ({ cluster, all }) => {
  const { probed } = all;
  const [first] = probed?.failed ?? [];
  if (probed === undefined || first === undefined || all.clusters[0]?.cluster !== cluster) return [];
  const [at = cluster] = first.at.split(/[/ ]/);
  return [
    {
      code: first.hop === 'path MTU' ? 'link_mtu' : 'traffic_blocked',
      at,
      text: `${probed.failed.length} of ${probed.rows} probes between pods fail, the first at ${first.hop} (${first.at}): ${first.why}`,
      evidence: probed.failed.slice(0, 4).map(({ hop, at: place, why }) => `${hop} (${place}): ${why}`),
      todo: first.todo,
    },
  ];
};
