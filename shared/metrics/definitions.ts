/** Every metric of the agents and of the broker: name, type, labels, meaning. `docs/reference/metrics.md` is written from it. */
import type { MetricDefinition } from './registry.ts';

const define = <const L extends string>(
  name: string,
  type: MetricDefinition['type'],
  labels: readonly L[],
  help: string,
  buckets?: readonly number[],
): MetricDefinition<L> => ({ name, type, labels, help, ...(buckets !== undefined && { buckets }) });

/** 10, 15 and 20 ms, then eight steps of 16.25 ms, then four by the fourth root of two; as Liqo has them. */
const latencyBuckets = [
  10_000, 15_000, 20_000, 36_250, 52_500, 68_750, 85_000, 101_250, 117_500, 133_750, 150_000, 178_380, 212_129, 252_264,
  299_992,
];

const peer = ['driver', 'cluster_id'] as const;
const reflected = ['namespace', 'reflector_resource', 'cluster_id', 'node_name'] as const;

/** Of the process that looks after the active gateway of a link: its node's. */
export const linkMetrics = {
  receivedBytes: define(
    'liqo_peer_receive_bytes_total',
    'counter',
    peer,
    'Bytes received from the peer through the tunnel.',
  ),
  sentBytes: define('liqo_peer_transmit_bytes_total', 'counter', peer, 'Bytes sent to the peer through the tunnel.'),
  latency: define(
    'liqo_peer_latency_us',
    'gauge',
    peer,
    'Round trip of the last answered ping through the tunnel, in microseconds; no sample while the peer does not answer.',
  ),
  latencyHistogram: define(
    'liqo_peer_latency_histogram_us',
    'histogram',
    peer,
    'Round trips of all answered pings through the tunnel, in microseconds.',
    latencyBuckets,
  ),
  connected: define(
    'liqo_peer_is_connected',
    'gauge',
    peer,
    '1 while the peer answers pings through the tunnel, else 0.',
  ),
  implementation: define(
    'liqo_wireguard_implementation',
    'gauge',
    ['driver', 'implementation'],
    'How many tunnels of this node are of this implementation: kernel or userspace.',
  ),
  packetLoss: define(
    'isthmus_link_packet_loss_ratio',
    'gauge',
    ['cluster_id'],
    'Share of the last pings that the peer did not answer, from 0 to 1.',
  ),
  handshake: define(
    'isthmus_link_last_handshake_timestamp_seconds',
    'gauge',
    ['cluster_id'],
    "When the tunnel last shook hands with the peer, by this node's clock, in seconds of the Unix epoch.",
  ),
  mtu: define(
    'isthmus_link_mtu_bytes',
    'gauge',
    ['cluster_id'],
    'Largest packet that the path of the tunnel was measured to let through.',
  ),
  restarts: define(
    'isthmus_tunnel_restarts_total',
    'counter',
    ['cluster_id'],
    'Processes of tunnels on this node that ended and were found again.',
  ),
} as const;

/** Of every agent process. */
export const processMetrics = {
  build: define('isthmus_build_info', 'gauge', ['version', 'role', 'runtime'], '1; its labels say what runs.'),
  cpu: define('process_cpu_seconds_total', 'counter', [], 'Processor time that the process has used, in seconds.'),
  memory: define('process_resident_memory_bytes', 'gauge', [], 'Resident memory of the process.'),
  start: define('process_start_time_seconds', 'gauge', [], 'When the process began, in seconds of the Unix epoch.'),
  requests: define(
    'isthmus_api_requests_total',
    'counter',
    ['target', 'verb', 'code'],
    'Answers of API servers by HTTP status; code 0: none came. target is local, or peer for the API servers of providers. Watches are not counted.',
  ),
  watchAge: define(
    'isthmus_watch_age_seconds',
    'gauge',
    ['target', 'kind'],
    'Time since the last event or bookmark of the watch of this kind that has been silent longest. A healthy one stays below 90.',
  ),
} as const;

/** Of the controllers. Only the leader has what its objects say. */
export const controllerMetrics = {
  leading: define('isthmus_leading', 'gauge', [], '1 in the replica that leads, 0 in those that stand by.'),
  duration: define(
    'isthmus_reconcile_duration_seconds',
    'histogram',
    ['controller'],
    'How long passes over one object took.',
    [0.005, 0.025, 0.1, 0.5, 1, 5, 10],
  ),
  passes: define(
    'isthmus_reconciles_total',
    'counter',
    ['controller', 'outcome'],
    'Passes over objects by outcome: settled, waiting, stalled, again, or error, which is retried.',
  ),
  queue: define(
    'isthmus_queue_depth',
    'gauge',
    ['controller'],
    'Objects that waited for a worker when one last took an object.',
  ),
  verdicts: define(
    'isthmus_webhook_reviews_total',
    'counter',
    ['path', 'verdict'],
    'Admission reviews by verdict: allowed, denied, or failed when the webhook could not decide.',
  ),
  reflectedItems: define(
    'liqo_virtual_kubelet_reflection_item_counter',
    'gauge',
    reflected,
    'Objects that are reflected now. As in the Liqo book it rises and falls; it reaches zero when nothing is reflected.',
  ),
  reflectionErrors: define(
    'liqo_virtual_kubelet_reflection_error_counter',
    'counter',
    reflected,
    'Passes of reflection that failed and are tried again.',
  ),
  offloadedPods: define(
    'isthmus_offloaded_pods',
    'gauge',
    ['cluster_id', 'node_name', 'phase'],
    'Pods that are bound to a virtual node, by their phase.',
  ),
  boundToReady: define(
    'isthmus_pod_bound_to_ready_seconds',
    'histogram',
    ['cluster_id', 'node_name'],
    'Time from the binding of a pod to a virtual node until it is Ready here.',
    [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300],
  ),
  podWait: define(
    'isthmus_pod_wait_seconds',
    'gauge',
    ['cluster_id', 'node_name'],
    'How long the oldest pod of a virtual node that has no pod at the provider yet has been waiting for that.',
  ),
  providerAnswers: define(
    'isthmus_provider_answers',
    'gauge',
    ['cluster_id', 'node_name'],
    '1 while the API server of the provider answers the virtual kubelet, else 0.',
  ),
  phase: define(
    'isthmus_peering_phase',
    'gauge',
    ['cluster_id', 'role', 'phase'],
    '1 for the phase of each peer: Ready, Pending or Error, over all modules that are enabled. role is what the peer is.',
  ),
  condition: define(
    'isthmus_peer_condition',
    'gauge',
    ['cluster_id', 'module', 'condition', 'status'],
    "1 for the status of each condition of a peer's ForeignCluster.",
  ),
  granted: define(
    'isthmus_slice_granted',
    'gauge',
    ['cluster_id', 'role', 'slice', 'resource'],
    'What a ResourceSlice grants, in cores, bytes or pieces. role is what the peer is.',
  ),
  used: define(
    'isthmus_slice_used',
    'gauge',
    ['cluster_id', 'role', 'slice', 'resource'],
    'What pods use of a ResourceSlice: their requests, as the provider counts them.',
  ),
  certificateEnd: define(
    'isthmus_certificate_expiry_timestamp_seconds',
    'gauge',
    ['cluster_id', 'kind', 'name'],
    'When the certificate of an identity ends, in seconds of the Unix epoch, by the provider that it is for.',
  ),
  tokenEnd: define(
    'isthmus_token_expiry_timestamp_seconds',
    'gauge',
    ['cluster_id', 'kind', 'name'],
    'The same of the token of an identity, where the provider gives tokens in place of certificates.',
  ),
  brokerConnected: define(
    'isthmus_broker_connected',
    'gauge',
    [],
    '1 while the broker is connected to this cluster, 0 while it is away; no sample without a broker.',
  ),
  brokerExchange: define(
    'isthmus_broker_last_exchange_timestamp_seconds',
    'gauge',
    [],
    'When the broker last answered, in seconds of the Unix epoch.',
  ),
} as const;

/** Of the broker in local mode. The hosted one has what AWS counts for its functions. */
export const brokerMetrics = {
  build: define('isthmus_broker_build_info', 'gauge', ['version', 'runtime'], '1; its labels say what runs.'),
  requests: define(
    'isthmus_broker_requests_total',
    'counter',
    ['route', 'code'],
    'Requests by route and HTTP status; the route of what no route answers is empty.',
  ),
  duration: define(
    'isthmus_broker_request_duration_seconds',
    'histogram',
    ['route'],
    'How long requests took. Those with ?wait= are long on purpose.',
    [0.005, 0.025, 0.1, 0.5, 1, 5, 25],
  ),
  sockets: define('isthmus_broker_agents_connected', 'gauge', [], 'Notify sockets of agents that are open.'),
  waiting: define('isthmus_broker_requests_waiting', 'gauge', [], 'Requests with ?wait= that are waiting now.'),
} as const;
