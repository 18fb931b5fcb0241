/**
 * Where the packets of a failed probe end. Walks node, gateway, tunnel, gateway, node, pod, first with what objects say, then with what other
 * probes did. Pure.
 */
import type { EndEvidence, Evidence, FailingHop, HopName } from './evidence.ts';

type Step = (evidence: Evidence) => FailingHop | undefined;

const hop = (name: HopName, at: string, why: string, todo: string): FailingHop => ({ hop: name, at, why, todo });
const place = ({ cluster, node }: EndEvidence): string => (node === undefined ? cluster : `${cluster}/${node}`);
const gatewayPlace = ({ cluster, activeNode }: EndEvidence): string =>
  activeNode === undefined ? cluster : `${cluster}/${activeNode}`;

/** WireGuard makes new keys every two minutes while packets flow, and gives a session up after three. */
const freshHandshakeMs = 180_000;

/** The first of these that knows. The last one always does. */
const walk: readonly Step[] = [
  unlikeExpected,
  noExternalAddress,
  withinCaller,
  ({ from }) => objectsOf(from, 'source'),
  ({ to }) => objectsOf(to, 'target'),
  ({ from }) => nodeOf(from, 'source'),
  ({ from }) => legOf(from, 'source node to gateway'),
  betweenGateways,
  ({ to }) => nodeOf(to, 'target'),
  ({ to }) => legOf(to, 'target gateway to node'),
  sizes,
  userRules,
  theTarget,
  theMiddle,
];

export function failingHop(evidence: Evidence): FailingHop {
  for (const step of walk) {
    const found = step(evidence);
    if (found !== undefined) return found;
  }
  return theMiddle(evidence);
}

function unlikeExpected({ source, from }: Evidence): FailingHop | undefined {
  if (source === undefined) return undefined;
  return hop(
    'source address',
    place(from),
    `the receiver saw ${source.seen} instead of ${source.expected}`,
    `something on ${place(from)} rewrites the source before Isthmus does: exempt the ranges of the peer from the CNI's masquerade (docs/network.md, NAT)`,
  );
}

function noExternalAddress({ noAddress, to }: Evidence): FailingHop | undefined {
  if (noAddress === undefined) return undefined;
  return hop(
    'external host',
    to.cluster,
    `its IP object got no address: ${noAddress}`,
    'look at the Network external-cidr in namespace liqo',
  );
}

/** A detour through a Service or NodePort failed where the straight way works. */
function withinCaller({ what, from, directly, inside }: Evidence): FailingHop | undefined {
  if (what === 'outside-to-nodeport' && inside === true) {
    return hop(
      'node port',
      place(from),
      'pods of the cluster reach the NodePort, this machine does not',
      `open the NodePort range between this machine and ${place(from)}`,
    );
  }
  if (directly !== true) return undefined;
  if (what === 'pod-to-service') {
    return hop(
      'service',
      place(from),
      'the pods behind the Service answer, the Service does not',
      `look at kube-proxy, or what replaces it, on ${place(from)}`,
    );
  }
  if (what !== 'pod-to-nodeport' && what !== 'outside-to-nodeport') return undefined;
  return hop(
    'node port',
    place(from),
    'the pods behind the NodePort answer, the NodePort does not',
    `look at kube-proxy, or what replaces it, and at the firewall of ${place(from)}`,
  );
}

function objectsOf(end: EndEvidence, side: 'source' | 'target'): FailingHop | undefined {
  const gatewayHop = `${side} gateway` as const;
  const { cluster } = end;
  if (end.ranges !== 'configured') {
    return hop(
      'ranges',
      cluster,
      end.ranges.missing,
      'look at the conditions of the Configuration and its Networks in the tenant namespace',
    );
  }
  if (end.gateway === 'absent') {
    return hop(
      gatewayHop,
      cluster,
      'there is no GatewayServer and no GatewayClient for the peer',
      'peer with --network, or create one (docs/gateways.md)',
    );
  }
  if (end.gatewayPods === 0) {
    const problem = typeof end.gateway === 'object' ? `: ${end.gateway.problem}` : '';
    return hop(
      gatewayHop,
      cluster,
      `the gateway has no pod${problem}`,
      'look at the Deployment gw-… of the tenant namespace',
    );
  }
  if (end.activeNode === undefined) {
    return hop(
      gatewayHop,
      cluster,
      'none of the gateway pods is active',
      "look at the pods gw-… and at the node processes of their nodes (kubectl -n liqo get pods -o wide -l networking.isthmus.dev/node-process), which take the gateway's Lease",
    );
  }
  if (!end.fabric) {
    return hop(
      gatewayHop,
      cluster,
      'the gateway has no InternalFabric, so that no node has routes to it',
      'look at the condition Ready of the gateway and at the log of deployment isthmus-agent',
    );
  }
  return undefined;
}

function nodeOf(end: EndEvidence, side: 'source' | 'target'): FailingHop | undefined {
  if (end.node === undefined) return undefined;
  const name = `${side} node` as const;
  if (!end.nodeReady) return hop(name, place(end), 'the node is not Ready', 'look at the node');
  if (!end.process) {
    return hop(
      name,
      place(end),
      'no node process runs there',
      'look at it: kubectl -n liqo get pods -o wide -l networking.isthmus.dev/node-process',
    );
  }
  if (!end.overlay) {
    return hop(
      name,
      place(end),
      'the node has no InternalNode, so no address on the overlay',
      'look at Network internal-cidr in namespace liqo and at the log of deployment isthmus-agent',
    );
  }
  return undefined;
}

function legOf(end: EndEvidence, name: 'source node to gateway' | 'target gateway to node'): FailingHop | undefined {
  const { node, activeNode, leg } = end;
  if (node === undefined || leg === undefined || leg === 'works') return undefined;
  if (leg === 'small-only') return smallOnly(end, node);
  const route = node === activeNode ? 'to the gateway pod on the same node' : `to the gateway pod on ${activeNode}`;
  const broken = end.gatewayLeg === 'silent' && node !== activeNode ? `, nor does that of ${activeNode} itself` : '';
  return hop(
    name,
    place(end),
    `the overlay of ${node} ${route} does not answer${broken}`,
    `let UDP 6091 pass between ${node} and the gateway pod, both ways (firewalls and security groups of nodes, NetworkPolicies); what is ours there is repaired within 5 s`,
  );
}

const smallOnly = (end: EndEvidence, node: string): FailingHop =>
  hop(
    'path MTU',
    place(end),
    `between ${node} and the gateway only small packets pass`,
    'the network between nodes carries less than 50 bytes more than the MTU of the link: lower it with `isthmus peer --mtu`, at least 1280',
  );

/** Pings cross from the gateway's node to the peer's and back: what they do not tell apart, the legs and the age of the handshake do. */
function betweenGateways({ from, to, now }: Evidence): FailingHop | undefined {
  const [mine, theirs] = [from.connection, to.connection];
  if (mine?.value === 'Connected' && theirs?.value === 'Connected') return undefined;
  if (from.gatewayLeg === 'silent') return ownGateway(from, 'source gateway');
  if (to.gatewayLeg === 'silent') return ownGateway(to, 'target gateway');
  const handshake = Math.max(mine?.handshakeAt ?? 0, theirs?.handshakeAt ?? 0);
  const advice = `${from.cluster} says ${mine?.value ?? 'nothing'}, ${to.cluster} says ${theirs?.value ?? 'nothing'}`;
  const at = `${from.cluster} - ${to.cluster}`;
  if (handshake > 0 && now - handshake < freshHandshakeMs) {
    return hop(
      'tunnel',
      at,
      `WireGuard shook hands ${Math.round((now - handshake) / 1_000)} s ago, but pings do not cross (${advice})`,
      'pass UDP both ways between the gateways, and look at the log of the node processes there',
    );
  }
  const never = handshake === 0 ? 'WireGuard never shook hands' : 'WireGuard has not shaken hands for long';
  return hop(
    'tunnel',
    at,
    `${never} (${advice})`,
    'let the dialling side reach UDP at the endpoint of the other (status.endpoint of the GatewayServer), and compare PublicKey with the Secret of the peer',
  );
}

const ownGateway = (end: EndEvidence, name: 'source gateway' | 'target gateway'): FailingHop =>
  hop(
    name,
    gatewayPlace(end),
    `the gateway pod does not answer its own node ${end.activeNode}`,
    `look at the node process on ${end.activeNode} and whether UDP 6091 passes between that node and its pods`,
  );

function sizes({ largeOnly, from, to }: Evidence): FailingHop | undefined {
  if (!largeOnly) return undefined;
  for (const end of [from, to])
    if (end.gatewayLeg === 'small-only' && end.activeNode) return smallOnly(end, end.activeNode);
  const [mine, theirs] = [from.connection?.mtu, to.connection?.mtu];
  return hop(
    'path MTU',
    `${from.cluster} - ${to.cluster}`,
    `small packets pass, large ones do not; the path was found to take ${mine ?? '?'} bytes from ${from.cluster} and ${theirs ?? '?'} from ${to.cluster}`,
    'something on the way drops large packets silently: peer again with a smaller `--mtu`, at least 1280',
  );
}

function userRules({ from, to }: Evidence): FailingHop | undefined {
  for (const [end, name] of [
    [from, 'source node'],
    [to, 'target node'],
  ] as const) {
    const [first] = end.hostErrors;
    if (first !== undefined)
      return hop(
        name,
        place(end),
        `cannot apply ${first}`,
        'correct that object; until then none of its rules holds on that host',
      );
  }
  return undefined;
}

function theTarget({ what, to, failure, answersLocally }: Evidence): FailingHop | undefined {
  if (what === 'pod-to-external') {
    return failure === 'refused' || answersLocally === false
      ? hop(
          'external host',
          to.cluster,
          'the host does not answer the cluster behind which it is either',
          'check address and port, and whether the host can be reached from the nodes',
        )
      : undefined;
  }
  if (answersLocally === false) {
    return hop(
      'target pod',
      place(to),
      'the pod does not answer its own cluster either',
      `look at the CNI of ${to.cluster} and at NetworkPolicies there`,
    );
  }
  return failure === 'refused'
    ? hop(
        'target pod',
        place(to),
        'a host answers there that no process listens on the port',
        'the address belongs to another pod by now: run the test again',
      )
    : undefined;
}

/** Every leg and the tunnel work: what is left is translation and filtering. */
function theMiddle({ from, to, failure, fromGatewayNode }: Evidence): FailingHop {
  if (failure === 'unreachable') {
    return hop(
      'source node',
      place(from),
      'the kernel there knows no way to the address',
      `look at \`ip route show table all | grep liqo-overlay\` and the log of the node process on ${place(from)}`,
    );
  }
  if (fromGatewayNode === true && from.node !== undefined && from.node !== from.activeNode) {
    return hop(
      'source node',
      place(from),
      `the same address answers callers on ${from.activeNode}; overlay and tunnel work`,
      `look for firewalls and NetworkPolicies that drop forwarded packets on ${place(from)}`,
    );
  }
  return hop(
    'target node',
    place(to),
    'overlay and tunnel work on both sides, and the pod answers its own cluster',
    `look for NetworkPolicies and firewalls that drop packets from ranges of the peer on ${place(to)}; some CNIs filter by source (docs/network.md, CNIs)`,
  );
}
