/**
 * What `isthmus doctor` can find, by stable code. The order is causal: what stands above can bring about what stands below, so that of several
 * findings the topmost one is the cause. The page docs/doctor.md lists them with their exit codes.
 */

/** Exit codes by area; those below 10 are of every command (a wrong option, a broker that refuses the login, …). */
const exits = { cluster: 10, agent: 11, network: 12, credentials: 13, capacity: 14, workload: 15, broker: 16 } as const;
type Area = keyof typeof exits;
export const exitCodes = Object.entries(exits).map(([area, exit]) => ({ area, exit }));

export const causes = {
  kubeconfig_refused: ['cluster', 'the API server does not accept the credentials in the kubeconfig'],
  cluster_silent: ['cluster', 'the API server does not answer'],
  looking_forbidden: ['cluster', 'the user of the kubeconfig may not read what doctor has to see'],
  not_installed: ['cluster', 'Isthmus is not installed in the cluster'],
  same_cluster_id: ['cluster', 'two different clusters have the same cluster ID'],
  clock_wrong: ['cluster', 'clocks are more than a minute apart'],
  crds_differ: ['agent', 'CustomResourceDefinitions are missing or of another version'],
  second_agent: ['agent', 'a second agent, or Liqo itself, works on the same objects'],
  rights_removed: ['agent', 'roles or bindings of the agent are not what the installation made'],
  agent_missing: ['agent', 'the Deployment of the agent is not there'],
  agent_stopped: ['agent', 'the Deployment of the agent is scaled to 0'],
  agent_image: ['agent', 'a node cannot get the image of a pod of ours'],
  agent_refused: ['agent', 'the API server refuses pods of ours: quota, pod security, or a webhook of others'],
  nodes_full: ['cluster', 'nodes are short of disk, memory or processes, and evict pods or take none'],
  nodes_down: ['cluster', 'nodes are not Ready'],
  agent_unscheduled: ['agent', 'no node takes a pod of ours: taints, room or labels'],
  agent_crashes: ['agent', 'a container of ours ends again and again, or does not become ready'],
  webhook_gone: ['agent', 'the webhooks of the agent are not registered'],
  webhook_untrusted: ['agent', 'the API server does not believe the certificate of the webhooks'],
  webhook_unreachable: ['agent', 'the API server cannot reach the webhooks of the agent'],
  conntrack_full: ['network', 'the connection table of a node is full: new connections are dropped'],
  node_process_missing: ['network', 'no node process runs on a node: its pods reach no peer'],
  traffic_policy: ['network', 'a NetworkPolicy of the cluster selects pods of ours'],
  ranges_refused: ['network', 'the ranges of a peer have no place here: they overlap or a pool is used up'],
  gateway_missing: ['network', 'one side has no gateway for the peering'],
  gateway_down: ['network', 'a gateway has no pod that carries its link'],
  link_keys: ['network', 'one end expects another WireGuard key than the other has'],
  link_endpoint: ['network', 'the end that dials is sent to another address than where the other listens'],
  link_silent: ['network', 'no UDP passes between the gateways'],
  link_one_way: ['network', 'packets pass between the gateways in one direction only'],
  link_mtu: ['network', 'large packets are lost between the clusters'],
  link_lossy: ['network', 'a notable part of the packets between the gateways is lost'],
  traffic_blocked: ['network', 'the link works, and pods do not reach each other through it'],
  provider_moved: ['credentials', "the consumer's credentials name another API server than the provider has"],
  provider_ca_changed: ['credentials', "the consumer does not trust the certificate of the provider's API server"],
  credentials_expired: ['credentials', "the consumer's certificate for the provider has ended"],
  credentials_missing: ['credentials', 'the Secret with the credentials for the provider is gone or unreadable'],
  peer_unknown: ['credentials', 'one side knows the other as a peer, and the other does not'],
  consumer_rights: ['credentials', 'the provider no longer gives the consumer its rights'],
  provider_unreachable: ['credentials', "the consumer's agent does not reach the provider's API server"],
  policy_refuses: ['capacity', 'the policy of the provider refuses or limits the slice'],
  slice_unanswered: ['capacity', 'the provider has not answered a request for capacity'],
  provider_cordoned: ['capacity', 'the provider takes no new pods of this peering'],
  node_closed: ['capacity', 'the virtual node is cordoned or has taints that no pod tolerates'],
  node_missing: ['capacity', 'there is no virtual node for a peering that should have one'],
  no_open_node: ['capacity', 'every node of the provider is cordoned or has a taint that keeps guests away'],
  nothing_granted: ['capacity', 'the provider grants nothing of what a node needs'],
  quota_used_up: ['capacity', 'pods want more than is left of what the provider granted'],
  node_not_ready: ['capacity', 'the virtual node is not Ready, for another reason than those above'],
  namespace_not_offloaded: ['workload', 'pods wait in a namespace that is not offloaded'],
  selector_matches_nothing: ['workload', 'the clusterSelector of a NamespaceOffloading matches no virtual node'],
  namespace_refused: ['workload', 'the namespace could not be made at the provider'],
  pod_too_old: ['workload', 'the pod was made before its namespace was offloaded'],
  pod_refused: ['workload', 'the provider refuses a pod: pod security, guest rules or quota of the namespace'],
  pod_image: ['workload', 'a node of the provider cannot get the image of a pod'],
  pod_config: ['workload', 'a ConfigMap, Secret or volume that a pod names is not there'],
  pod_crashes: ['workload', 'a container of a pod ends again and again'],
  pod_unschedulable: ['workload', 'no node takes a pod, here or at the provider'],
  dns_down: ['workload', 'the DNS of a cluster has no pod that answers'],
  not_peered: ['broker', 'the broker, which was asked alone, knows no such peering'],
  agent_unheard: ['broker', 'the broker, which was asked alone, does not hear from an agent, or its cluster has left'],
  peering_waits: ['broker', 'the broker, which was asked alone, waits for something that is missing at one end'],
  broker_refuses: ['broker', 'the broker no longer accepts the agent: token or key revoked, cluster removed'],
  broker_away: ['broker', 'the agent does not reach its broker; running peerings do not notice'],
  partly_read: ['cluster', 'something could not be read in time, so that a cause may be hidden'],
  other_warning: ['cluster', '`isthmus status` warns of something that doctor knows no cause of'],
} as const satisfies Readonly<Record<string, readonly [area: Area, means: string]>>;

export type CauseCode = keyof typeof causes;
export const causeCodes = Object.keys(causes) as readonly CauseCode[];
export const exitOf = (code: CauseCode): number => exits[causes[code][0]];

const warnings: readonly CauseCode[] = ['broker_away', 'partly_read', 'other_warning'];
/** It works, and something beside it does not: never the cause of what is broken. */
export const isWarning = ({ code }: Finding): boolean => warnings.includes(code);

export interface Finding {
  readonly code: CauseCode;
  /** Name of the cluster in which it is to be mended. */
  readonly at: string;
  /** What is wrong, one sentence with the names. */
  readonly text: string;
  /** What was seen, in the words of the objects. */
  readonly evidence: readonly string[];
  /** With the exact command. */
  readonly todo: string;
}

const rank = new Map<string, number>(causeCodes.map((code, at) => [code, at]));
const rankOf = ({ code }: Finding): number => rank.get(code) ?? 0;

/** Whether it can bring about what the code stands for. */
export const outranks = (finding: Finding, code: CauseCode): boolean => rankOf(finding) < (rank.get(code) ?? 0);

/** The cause first; the order of equals is kept. */
export const byCause = (findings: readonly Finding[]): Finding[] => findings.toSorted((a, b) => rankOf(a) - rankOf(b));
