/** A fault for each cause that the doctor knows from facts of clusters. */
import type { CauseCode } from '../causes.ts';
import type { DoctorFacts } from '../facts.ts';
import { allWell, now, ready } from './healthy-clusters.ts';

// biome-ignore lint/suspicious/noExplicitAny: a fault changes any member of objects that are readonly everywhere else
export type Loose = any;
export interface Fault {
  readonly says: CauseCode;
  readonly make: (rome: Loose, milan: Loose, all: Loose) => void;
}

const podIn = (namespace: string, spec: object, status: object) => ({
  metadata: { name: 'web', namespace, labels: {} },
  spec: { containers: [{ name: 'main', image: 'i' }], ...spec },
  status,
});
const waiting = (reason: string) => ({
  phase: 'Pending',
  containerStatuses: [{ name: 'main', image: 'i', restartCount: 0, state: { waiting: { reason } } }],
});
const bound = { nodeName: 'milan', tolerations: [{ key: 'virtual-node.liqo.io/not-allowed' }] };
export const unscheduled = (message: string) => ({
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'False', message }],
});
const down = (rome: Loose, milan: Loose): void => {
  for (const one of [rome, milan]) one.link.connections[0].status.value = 'Error';
};

/** Of a link that is down: milan sends 148 bytes, and so many packets come to the node of rome; without a number only milan was looked at, and hears rome. */
const unheard = (rome: Loose, milan: Loose, nodeStrays?: number): void => {
  down(rome, milan);
  const heard = nodeStrays === undefined ? 296 : 0;
  rome.gatewaySights = heard > 0 ? [] : [{ peer: 'milan', sent: 296, received: 0, strays: 0, nodeStrays }];
  milan.gatewaySights = [{ peer: 'rome', sent: 148, received: heard, strays: 0, nodeStrays: 0 }];
};

/** One for each cause that facts of clusters give. */
export const faults: readonly Fault[] = [
  {
    says: 'second_agent',
    make: (rome) => rome.agents.push({ metadata: { name: 'liqo-controller-manager', namespace: 'liqo' } }),
  },
  {
    says: 'second_agent',
    make: (rome) => rome.claimants.push({ node: 'milan', manager: 'kubelet', at: now - 3_000 }),
  },
  {
    says: 'clock_wrong',
    make: (rome, milan) =>
      Object.assign(rome, { clockAheadMs: 90_000 }) && Object.assign(milan, { clockAheadMs: 90_000 }),
  },
  { says: 'crds_differ', make: (rome) => rome.crds.push({ name: 'quotas.offloading.liqo.io', how: 'is missing' }) },
  { says: 'rights_removed', make: (_, milan) => milan.rights.push('ClusterRole isthmus-agent is missing') },
  { says: 'agent_missing', make: (rome) => delete rome.status.agent },
  { says: 'agent_stopped', make: (_, milan) => Object.assign(milan.status.agent.spec, { replicas: 0 }) },
  { says: 'agent_image', make: (rome) => Object.assign(rome.ownPods[0], { status: waiting('ImagePullBackOff') }) },
  {
    says: 'agent_refused',
    make: (rome) => {
      rome.status.agent.status.readyReplicas = 0;
      rome.ownPods.shift();
      rome.nodes = [
        { ...rome.nodes[0], metadata: { ...rome.nodes[0].metadata, labels: { 'kubernetes.io/os': 'windows' } } },
      ];
      rome.events.push({
        type: 'Warning',
        reason: 'FailedCreate',
        message: 'pods "x" is forbidden: exceeded quota: q',
        metadata: { namespace: 'liqo', name: 'e' },
        lastTimestamp: '2026-11-23T11:59:50Z',
        involvedObject: { kind: 'ReplicaSet', name: 'isthmus-agent-5', namespace: 'liqo' },
      });
    },
  },
  {
    says: 'nodes_full',
    make: (_, milan) => milan.nodes[0].status.conditions.push({ type: 'DiskPressure', status: 'True' }),
  },
  {
    says: 'nodes_down',
    make: (_, milan) => Object.assign(milan.nodes[0].status.conditions[0], { status: 'Unknown' }),
  },
  {
    says: 'agent_unscheduled',
    make: (rome) => Object.assign(rome.ownPods[0], { spec: { containers: [] }, status: unscheduled('no node') }),
  },
  { says: 'agent_crashes', make: (rome) => Object.assign(rome.ownPods[0], { status: waiting('CrashLoopBackOff') }) },
  { says: 'webhook_gone', make: (rome) => Object.assign(rome, { webhooks: { registered: false } }) },
  {
    says: 'webhook_untrusted',
    make: (rome) => Object.assign(rome, { webhooks: { registered: true, failure: 'x509: unknown authority' } }),
  },
  {
    says: 'webhook_unreachable',
    make: (rome) => Object.assign(rome, { webhooks: { registered: true, failure: 'connection refused' } }),
  },
  { says: 'conntrack_full', make: (rome) => Object.assign(rome.sights[0].connections, { count: 990 }) },
  {
    says: 'node_process_missing',
    make: (rome) => rome.nodes.push({ metadata: { name: 'rome-2', labels: {} }, status: { ...ready } }),
  },
  {
    says: 'traffic_policy',
    make: (rome) =>
      rome.policies.push({ metadata: { name: 'deny', namespace: 'liqo-tenant-milan' }, spec: { podSelector: {} } }),
  },
  {
    says: 'ranges_refused',
    make: (rome) =>
      rome.link.configurations[0].status.conditions.push({
        type: 'x',
        status: 'False',
        reason: 'RangeTaken',
        message: 'taken',
      }),
  },
  { says: 'gateway_missing', make: (rome) => rome.link.clients.pop() },
  { says: 'gateway_down', make: (_, milan) => milan.ownPods.pop() },
  {
    says: 'link_keys',
    make: (rome, milan) => {
      down(rome, milan);
      rome.link.publicKeys[0].spec.publicKey = 'old';
    },
  },
  {
    says: 'link_endpoint',
    make: (rome, milan) => {
      down(rome, milan);
      if (rome.link.clients[0]) rome.link.clients[0].spec.endpoint.port = 1;
    },
  },
  { says: 'link_silent', make: down },
  {
    says: 'link_one_way',
    make: (rome, milan) => {
      down(rome, milan);
      rome.gatewaySights = [{ peer: 'milan', sent: 500, received: 0, strays: 2, nodeStrays: 0 }];
      milan.gatewaySights = [{ peer: 'rome', sent: 300, received: 0, strays: 0, nodeStrays: 0 }];
    },
  },
  { says: 'link_one_way', make: (rome, milan) => unheard(rome, milan, 1) },
  { says: 'link_one_way', make: (rome, milan) => unheard(rome, milan) },
  // More than a gateway sends: others knock at the ports of this node.
  { says: 'link_silent', make: (rome, milan) => unheard(rome, milan, 40) },
  { says: 'link_lossy', make: (rome) => Object.assign(rome.link.connections[0].status, { packetLoss: 40 }) },
  {
    says: 'link_mtu',
    make: (_, __, all) =>
      Object.assign(all, {
        probed: { rows: 2, failed: [{ hop: 'path MTU', at: 'rome - milan', why: 'w', todo: 't' }] },
      }),
  },
  {
    says: 'traffic_blocked',
    make: (_, __, all) =>
      Object.assign(all, {
        probed: { rows: 2, failed: [{ hop: 'target node', at: 'milan/milan-1', why: 'w', todo: 't' }] },
      }),
  },
  { says: 'provider_moved', make: (_, milan) => Object.assign(milan, { apiServerUrl: 'https://milan-new:6443' }) },
  { says: 'provider_ca_changed', make: (_, milan) => Object.assign(milan, { ownCas: ['new'] }) },
  { says: 'credentials_expired', make: (rome) => Object.assign(rome.credentials[0]?.read ?? {}, { endsAt: now - 1 }) },
  { says: 'credentials_missing', make: (rome) => Object.assign(rome, { credentials: [] }) },
  { says: 'peer_unknown', make: (_, milan) => Object.assign(milan.status, { peers: [] }) },
  { says: 'consumer_rights', make: (_, milan) => Object.assign(milan.consumerRights, { rome: ['no RoleBinding'] }) },
  {
    says: 'provider_unreachable',
    make: (rome) =>
      Object.assign(rome.status.peers[0].status, {
        conditions: [{ type: 'APIServerStatus', status: 'Error', message: 'timeout' }],
      }),
  },
  {
    says: 'policy_refuses',
    make: (rome) =>
      rome.slices.push({
        metadata: { name: 's' },
        spec: { providerClusterID: 'milan' },
        status: { conditions: [{ type: 'Resources', status: 'Denied', message: 'too much' }] },
      }),
  },
  {
    says: 'slice_unanswered',
    make: (rome) => rome.slices.push({ metadata: { name: 's' }, spec: { providerClusterID: 'milan' } }),
  },
  {
    says: 'provider_cordoned',
    make: (rome) => rome.virtualNodes[0]?.spec.taints.push({ key: 'isthmus.dev/cordoned', effect: 'NoSchedule' }),
  },
  {
    says: 'node_closed',
    make: (rome) => rome.virtualNodes[0]?.spec.taints.push({ key: 'mine', effect: 'NoSchedule' }),
  },
  { says: 'node_missing', make: (rome) => Object.assign(rome, { virtualNodes: [] }) },
  {
    says: 'no_open_node',
    make: (_, milan) => {
      milan.nodes[0].spec.taints = [{ key: 'drill', value: 'yes', effect: 'NoSchedule' }];
      milan.status.quotas.push({ metadata: { name: 'q', labels: {} }, spec: { resources: { cpu: '0', pods: '0' } } });
    },
  },
  {
    says: 'nothing_granted',
    make: (rome) => Object.assign(rome.status.virtualNodes[0]?.spec ?? {}, { resourceQuota: { hard: { cpu: '0' } } }),
  },
  {
    says: 'quota_used_up',
    make: (rome) => rome.pods.push(podIn('shop', bound, { reason: 'OffloadingBackOff', message: 'quota_exceeded' })),
  },
  {
    says: 'node_not_ready',
    make: (rome) =>
      Object.assign(rome.virtualNodes[0]?.status ?? {}, { conditions: [{ type: 'Ready', status: 'False' }] }),
  },
  {
    says: 'namespace_not_offloaded',
    make: (rome) =>
      rome.pods.push(
        podIn(
          'other',
          { nodeSelector: { virtual: 'yes' } },
          unscheduled('untolerated taint {virtual-node.liqo.io/not-allowed: true}'),
        ),
      ),
  },
  {
    says: 'selector_matches_nothing',
    make: (rome) => Object.assign(rome.status.offloadings[0].status, { offloadingPhase: 'NoClusterSelected' }),
  },
  {
    says: 'namespace_refused',
    make: (rome) => Object.assign(rome.status.offloadings[0].status, { offloadingPhase: 'AllFailed' }),
  },
  { says: 'pod_too_old', make: (rome) => rome.pods.push(podIn('shop', {}, unscheduled('no node fits'))) },
  {
    says: 'pod_refused',
    make: (rome) => rome.pods.push(podIn('shop', bound, { reason: 'OffloadingRefused', message: 'privileged' })),
  },
  { says: 'pod_image', make: (rome) => rome.pods.push(podIn('shop', bound, waiting('ErrImagePull'))) },
  { says: 'pod_config', make: (rome) => rome.pods.push(podIn('shop', bound, waiting('CreateContainerConfigError'))) },
  { says: 'pod_crashes', make: (rome) => rome.pods.push(podIn('shop', bound, waiting('CrashLoopBackOff'))) },
  { says: 'pod_unschedulable', make: (rome) => rome.pods.push(podIn('shop', bound, unscheduled('0/1 nodes'))) },
  { says: 'dns_down', make: (_, milan) => Object.assign(milan, { dns: { ready: 0, why: 'none' } }) },
  {
    says: 'broker_refuses',
    make: (rome) =>
      Object.assign(rome.status.broker.status, {
        connected: false,
        conditions: [{ type: 'Connected', status: 'False', message: 'signature_invalid' }],
      }),
  },
  { says: 'broker_away', make: (rome) => Object.assign(rome.status.broker.status, { connected: false }) },
];

export function withFaults(chosen: readonly Fault[]): DoctorFacts {
  const all = allWell();
  for (const { make } of chosen) make(all.clusters[0]?.facts, all.clusters[1]?.facts, all);
  return all;
}

/** Causes whose faults change the same object, so that of each line one at a time can be made. */
const sameObject: readonly (readonly CauseCode[])[] = [
  [
    'agent_image',
    'agent_refused',
    'agent_unscheduled',
    'agent_crashes',
    'node_process_missing',
    'agent_missing',
    'agent_stopped',
    'second_agent',
  ],
  ['webhook_gone', 'webhook_untrusted', 'webhook_unreachable'],
  ['gateway_missing', 'link_keys', 'link_endpoint', 'link_silent', 'link_one_way', 'link_lossy'],
  ['gateway_down', 'traffic_policy'],
  ['link_mtu', 'traffic_blocked'],
  ['provider_moved', 'provider_ca_changed', 'credentials_expired', 'credentials_missing'],
  ['peer_unknown', 'provider_unreachable'],
  ['provider_cordoned', 'node_closed', 'nothing_granted', 'node_missing', 'node_not_ready'],
  ['selector_matches_nothing', 'namespace_refused'],
  ['broker_refuses', 'broker_away'],
];
export const objectOf = ({ says }: Fault): string => sameObject.find((codes) => codes.includes(says))?.[0] ?? says;
