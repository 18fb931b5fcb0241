/** The dashboards that come with `--metrics`. `npm run gen` writes them to `charts/isthmus/dashboards`. */
import { brokerMetrics, linkMetrics as link, controllerMetrics as of, processMetrics } from './definitions.ts';
import type { Dashboard } from './panel.ts';

const rate = (name: string): string => `rate(${name}[$__rate_interval])`;
const quantile = (q: number, name: string, by: string): string =>
  `histogram_quantile(${q}, sum by (le, ${by}) (${rate(`${name}_bucket`)}))`;

const network: Dashboard = {
  uid: 'isthmus-network',
  title: 'Isthmus / Network',
  description: 'Links between this cluster and its peers.',
  panels: [
    {
      title: 'Connected links',
      description: 'Links whose peer answers pings through the tunnel, and those whose peer does not.',
      unit: 'short',
      type: 'stat',
      queries: [
        { expr: `count(${link.connected.name} == 1) or vector(0)`, legend: 'connected' },
        { expr: `count(${link.connected.name} == 0) or vector(0)`, legend: 'not connected' },
      ],
    },
    {
      title: 'Total throughput',
      description: 'Bytes in a second through all tunnels.',
      unit: 'Bps',
      type: 'timeseries',
      queries: [
        { expr: `sum(${rate(link.receivedBytes.name)})`, legend: 'received' },
        { expr: `sum(${rate(link.sentBytes.name)})`, legend: 'sent' },
      ],
    },
    {
      title: 'Throughput by peer',
      description: 'Bytes in a second to and from each peer.',
      unit: 'Bps',
      type: 'timeseries',
      queries: [
        { expr: `sum by (cluster_id) (${rate(link.receivedBytes.name)})`, legend: 'from {{cluster_id}}' },
        { expr: `sum by (cluster_id) (${rate(link.sentBytes.name)})`, legend: 'to {{cluster_id}}' },
      ],
    },
    {
      title: 'Round trip',
      description: 'Of the last ping through the tunnel that the peer answered.',
      unit: 'µs',
      type: 'timeseries',
      queries: [{ expr: link.latency.name, legend: '{{cluster_id}}' }],
    },
    {
      title: 'Round trip, 99 of 100 pings',
      description: 'The bound below which 99 % of the round trips lie; the smallest bound that is told apart is 10 ms.',
      unit: 'µs',
      type: 'timeseries',
      queries: [{ expr: quantile(0.99, link.latencyHistogram.name, 'cluster_id'), legend: '{{cluster_id}}' }],
    },
    {
      title: 'Loss',
      description: 'Share of the last 100 pings that the peer did not answer.',
      unit: 'percentunit',
      type: 'timeseries',
      queries: [{ expr: link.packetLoss.name, legend: '{{cluster_id}}' }],
    },
    {
      title: 'Age of the last handshake',
      description: 'WireGuard repeats the handshake every two minutes while packets flow.',
      unit: 's',
      type: 'timeseries',
      queries: [{ expr: `time() - ${link.handshake.name}`, legend: '{{cluster_id}}' }],
    },
    {
      title: 'Restarts of tunnels',
      description: 'Processes of tunnels that ended and came back within the last hour.',
      unit: 'short',
      type: 'timeseries',
      queries: [{ expr: `sum by (cluster_id) (increase(${link.restarts.name}[1h]))`, legend: '{{cluster_id}}' }],
    },
    {
      title: 'Implementations',
      description: 'Active tunnels by implementation of WireGuard.',
      unit: 'short',
      type: 'stat',
      queries: [{ expr: `sum by (implementation) (${link.implementation.name})`, legend: '{{implementation}}' }],
    },
    {
      title: 'Peers by phase',
      description: 'Ready, Pending or Error, over all modules of a peering that are enabled.',
      unit: 'short',
      type: 'timeseries',
      queries: [{ expr: `sum by (phase) (${of.phase.name})`, legend: '{{phase}}' }],
    },
  ],
};

const nodes: Dashboard = {
  uid: 'isthmus-virtual-nodes',
  title: 'Isthmus / Virtual nodes',
  description: 'Virtual nodes, their pods, and capacity that is lent and borrowed.',
  panels: [
    {
      title: 'Offloaded pods',
      description: 'Pods that are bound to each virtual node, by phase.',
      unit: 'short',
      type: 'timeseries',
      queries: [{ expr: `sum by (node_name, phase) (${of.offloadedPods.name})`, legend: '{{node_name}} {{phase}}' }],
    },
    {
      title: 'From bound to Ready',
      description: 'Bounds below which half and 99 % of the pods became Ready.',
      unit: 's',
      type: 'timeseries',
      queries: [
        { expr: quantile(0.5, of.boundToReady.name, 'node_name'), legend: '{{node_name}} half' },
        { expr: quantile(0.99, of.boundToReady.name, 'node_name'), legend: '{{node_name}} 99 %' },
      ],
    },
    {
      title: 'Longest wait for the provider',
      description: 'How long the oldest pod that the provider has not made yet has waited.',
      unit: 's',
      type: 'timeseries',
      queries: [{ expr: of.podWait.name, legend: '{{node_name}}' }],
    },
    {
      title: 'Providers that answer',
      description: 'Whether the API server of each provider answers the virtual kubelet.',
      unit: 'bool_on_off',
      type: 'stat',
      queries: [{ expr: of.providerAnswers.name, legend: '{{node_name}}' }],
    },
    {
      title: 'Used of slices',
      description: 'Requests of pods as a share of what a slice grants, by resource.',
      unit: 'percentunit',
      type: 'timeseries',
      queries: [{ expr: `${of.used.name} / (${of.granted.name} > 0)`, legend: '{{role}} {{slice}} {{resource}}' }],
    },
    {
      title: 'Granted',
      description: 'What slices grant, in cores, bytes or pieces.',
      unit: 'short',
      type: 'table',
      queries: [{ expr: of.granted.name, legend: '' }],
    },
    {
      title: 'Certificates end',
      description: 'When the certificates of identities end.',
      unit: 's',
      type: 'timeseries',
      queries: [{ expr: `${of.certificateEnd.name} - time()`, legend: '{{cluster_id}} {{kind}}' }],
    },
    {
      title: 'Webhook verdicts',
      description: 'Admission reviews in a second, by verdict.',
      unit: 'ops',
      type: 'timeseries',
      queries: [{ expr: `sum by (verdict) (${rate(of.verdicts.name)})`, legend: '{{verdict}}' }],
    },
  ],
};

const reflection: Dashboard = {
  uid: 'isthmus-reflection',
  title: 'Isthmus / Reflection',
  description: 'What is reflected, and the controllers at work.',
  panels: [
    {
      title: 'Reflected objects',
      description: 'All objects that are reflected now.',
      unit: 'short',
      type: 'stat',
      queries: [{ expr: `sum(${of.reflectedItems.name})`, legend: 'objects' }],
    },
    {
      title: 'Reflected objects by kind',
      description: 'Objects that are reflected now, by kind and virtual node.',
      unit: 'short',
      type: 'timeseries',
      queries: [
        {
          expr: `sum by (reflector_resource, node_name) (${of.reflectedItems.name})`,
          legend: '{{reflector_resource}} {{node_name}}',
        },
      ],
    },
    {
      title: 'Reflected objects by namespace',
      description: 'The same as a table, by namespace.',
      unit: 'short',
      type: 'table',
      queries: [{ expr: `sum by (namespace, reflector_resource, cluster_id) (${of.reflectedItems.name})`, legend: '' }],
    },
    {
      title: 'Failures of reflection',
      description: 'Passes in a second that failed and are tried again, by kind.',
      unit: 'ops',
      type: 'timeseries',
      queries: [
        {
          expr: `sum by (reflector_resource) (${rate(of.reflectionErrors.name)}) or vector(0)`,
          legend: '{{reflector_resource}}',
        },
      ],
    },
    {
      title: 'Passes',
      description: 'Passes of controllers in a second, by outcome.',
      unit: 'ops',
      type: 'timeseries',
      queries: [{ expr: `sum by (outcome) (${rate(of.passes.name)})`, legend: '{{outcome}}' }],
    },
    {
      title: 'Duration of passes',
      description: 'The bound below which 99 % of the passes of each controller lie.',
      unit: 's',
      type: 'timeseries',
      queries: [{ expr: quantile(0.99, of.duration.name, 'controller'), legend: '{{controller}}' }],
    },
    {
      title: 'Queues',
      description: 'The ten controllers with the most objects waiting for a worker.',
      unit: 'short',
      type: 'timeseries',
      queries: [{ expr: `topk(10, ${of.queue.name})`, legend: '{{controller}}' }],
    },
    {
      title: 'API requests',
      description: 'Answers of API servers in a second, by verb and status; status 0 means that none came.',
      unit: 'reqps',
      type: 'timeseries',
      queries: [
        {
          expr: `sum by (target, verb, code) (${rate(processMetrics.requests.name)})`,
          legend: '{{target}} {{verb}} {{code}}',
        },
      ],
    },
    {
      title: 'Silence of watches',
      description: 'Time since the last event or bookmark of the watch that has been silent longest.',
      unit: 's',
      type: 'timeseries',
      queries: [{ expr: `max by (target) (${processMetrics.watchAge.name})`, legend: '{{target}}' }],
    },
    {
      title: 'Memory',
      description: 'Resident memory of the processes of the agent.',
      unit: 'bytes',
      type: 'timeseries',
      queries: [
        {
          expr: `${processMetrics.memory.name} * on (instance) group_left (role) ${processMetrics.build.name}`,
          legend: '{{role}} {{instance}}',
        },
      ],
    },
  ],
};

const broker: Dashboard = {
  uid: 'isthmus-broker',
  title: 'Isthmus / Broker',
  description: 'The broker in local mode, and how clusters see theirs.',
  panels: [
    {
      title: 'Clusters that hear from the broker',
      description: 'Whether the broker is connected to each cluster, as its agent sees it.',
      unit: 'bool_on_off',
      type: 'stat',
      queries: [{ expr: of.brokerConnected.name, legend: '{{instance}}' }],
    },
    {
      title: 'Since the last exchange',
      description: 'Time since the broker last answered, as agents see it.',
      unit: 's',
      type: 'timeseries',
      queries: [{ expr: `time() - ${of.brokerExchange.name}`, legend: '{{instance}}' }],
    },
    {
      title: 'Requests',
      description: 'Requests to the broker in a second, by route and status.',
      unit: 'reqps',
      type: 'timeseries',
      queries: [{ expr: `sum by (route, code) (${rate(brokerMetrics.requests.name)})`, legend: '{{route}} {{code}}' }],
    },
    {
      title: 'Duration of requests',
      description: 'The bound below which 99 % of the requests lie, by route. Requests that wait are long on purpose.',
      unit: 's',
      type: 'timeseries',
      queries: [{ expr: quantile(0.99, brokerMetrics.duration.name, 'route'), legend: '{{route}}' }],
    },
    {
      title: 'Agents connected',
      description: 'Notify sockets of agents that are open at the broker.',
      unit: 'short',
      type: 'timeseries',
      queries: [{ expr: brokerMetrics.sockets.name, legend: 'agents' }],
    },
    {
      title: 'Memory of the broker',
      description: 'Resident memory of its process.',
      unit: 'bytes',
      type: 'timeseries',
      queries: [
        {
          expr: `${processMetrics.memory.name} * on (instance) group_left (version) ${brokerMetrics.build.name}`,
          legend: '{{version}}',
        },
      ],
    },
  ],
};

export const dashboards: readonly Dashboard[] = [network, nodes, reflection, broker];
