/** Facts of two clusters in which nothing is wrong. */
import type { ClusterFacts, DoctorFacts, Looked } from '../facts.ts';

export const now = Date.parse('2026-11-23T12:00:00Z');
export const ready = { conditions: [{ type: 'Ready', status: 'True' }] };
const of = (peer: string) => ({ 'liqo.io/remote-cluster-id': peer });

/** Rome borrows from milan, and all is well. Members of the real objects that no rule reads are left out. */
function healthy(cluster: 'rome' | 'milan'): Looked {
  const peer = cluster === 'rome' ? 'milan' : 'rome';
  const tenant = { namespace: `liqo-tenant-${peer}`, labels: of(peer) };
  const isConsumer = cluster === 'rome';
  const pod = (name: string, labels: object, more: object = {}) => ({
    metadata: { name, namespace: 'liqo', labels, creationTimestamp: '2026-11-23T10:00:00Z' },
    spec: { nodeName: `${cluster}-1`, containers: [{ name: 'c', image: 'i' }], ...more },
    status: { phase: 'Running', ...ready },
  });
  const facts = {
    status: {
      clusterId: cluster,
      kubernetes: 'v1.34.4',
      agent: {
        metadata: { name: 'isthmus-agent', namespace: 'liqo' },
        spec: { replicas: 1, template: { spec: { containers: [{ name: 'c', image: 'isthmus/agent:1' }] } } },
        status: { readyReplicas: 1 },
      },
      broker: { spec: { url: 'https://b' }, status: { connected: true } },
      networks: [],
      peers: [
        {
          metadata: { name: peer },
          spec: { clusterID: peer },
          status: { modules: {}, conditions: [{ type: 'APIServerStatus', status: 'Established' }] },
        },
      ],
      connections: [],
      virtualNodes: isConsumer
        ? [{ metadata: { name: 'milan', ...tenant }, spec: { clusterID: 'milan', kubeconfigSecretRef: { name: 'k' } } }]
        : [],
      quotas: [],
      offloadings: isConsumer
        ? [{ metadata: { name: 'offloading', namespace: 'shop' }, spec: {}, status: { offloadingPhase: 'Ready' } }]
        : [],
      pods: [],
    },
    apiServerUrl: `https://${cluster}:6443`,
    ownCas: [`ca-of-${cluster}`],
    clockAheadMs: 200,
    nodes: [{ metadata: { name: `${cluster}-1`, labels: {} }, spec: {}, status: { ...ready } }],
    virtualNodes: isConsumer
      ? [{ metadata: { name: 'milan', labels: { virtual: 'yes' } }, spec: { taints: [] }, status: { ...ready } }]
      : [],
    namespaces: [
      { metadata: { name: tenant.namespace, labels: { ...tenant.labels, 'liqo.io/tenant-namespace': 'true' } } },
    ],
    agents: [],
    claimants: [],
    nodeProcess: { status: { desiredNumberScheduled: 0, numberReady: 0 } },
    ownPods: [
      pod('isthmus-agent-x', { 'networking.isthmus.dev/node-process': 'shared' }, { hostNetwork: true }),
      {
        ...pod('gw-x', {}),
        metadata: {
          name: 'gw-x',
          namespace: tenant.namespace,
          labels: { 'networking.liqo.io/component': 'gateway', 'networking.liqo.io/active': 'true' },
          creationTimestamp: '2026-11-23T10:00:00Z',
        },
      },
    ],
    events: [],
    crds: [],
    rights: [],
    webhooks: { registered: true },
    policies: [],
    dns: { ready: 1, why: '' },
    link: {
      configurations: [{ kind: 'Configuration', metadata: { name: peer, ...tenant }, status: { conditions: [] } }],
      servers: isConsumer
        ? []
        : [
            {
              kind: 'GatewayServer',
              metadata: { name: 's', ...tenant },
              status: { endpoint: { addresses: ['192.0.2.2'], port: 31000 } },
            },
          ],
      clients: isConsumer
        ? [
            {
              kind: 'GatewayClient',
              metadata: { name: 'c', ...tenant },
              spec: { endpoint: { addresses: ['192.0.2.2'], port: 31000 } },
            },
          ]
        : [],
      connections: [
        {
          metadata: { name: 'gw', ...tenant },
          status: { value: 'Connected', lastHandshakeTime: '2026-11-23T11:59:00Z' },
        },
      ],
      publicKeys: [{ metadata: { name: 'key', ...tenant }, spec: { publicKey: `key-of-${peer}` } }],
      ownKeys: { [peer]: `key-of-${cluster}` },
    },
    sides: {},
    credentials: isConsumer
      ? [
          {
            namespace: tenant.namespace,
            secret: 'k',
            peer: 'milan',
            used: 'virtual node',
            read: { server: 'https://milan:6443', proxied: false, trusts: ['ca-of-milan'], endsAt: now + 1_000_000 },
          },
        ]
      : [],
    identities: [],
    guestTolerations: [],
    tenants: isConsumer ? [] : [{ metadata: { name: 'rome', ...tenant }, spec: { clusterID: 'rome' } }],
    slices: [],
    consumerRights: isConsumer ? {} : { rome: [] },
    pods: [],
    sights: [{ node: `${cluster}-1`, connections: { count: 10, most: 1_000 } }],
    gatewaySights: [],
  };
  return {
    cluster,
    server: `https://${cluster}:6443`,
    kubectl: `kubectl --kubeconfig ${cluster}.kubeconfig`,
    installed: true,
    unread: [],
    facts: structuredClone(facts) as unknown as ClusterFacts,
  };
}

export const allWell = (): DoctorFacts => ({ now, clusters: [healthy('rome'), healthy('milan')] });
