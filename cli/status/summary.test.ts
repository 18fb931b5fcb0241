import { describe, expect, test } from 'vitest';
import { type ClusterObjects, summarize } from './summary.ts';
import { statusText } from './text.ts';

const label = { 'liqo.io/remote-cluster-id': 'milan' };

/** A consumer of `milan` whose link and node are well. */
const objects = (more: Record<string, unknown> = {}): ClusterObjects =>
  ({
    clusterId: 'rome',
    kubernetes: 'v1.34.4',
    agent: {
      metadata: { name: 'isthmus-agent' },
      spec: { replicas: 2, template: { spec: { containers: [{ name: 'c', image: 'isthmus/agent:1' }] } } },
      status: { readyReplicas: 2 },
    },
    broker: undefined,
    networks: [
      {
        metadata: { name: 'pod-cidr', annotations: { 'liqo.io/preinstalled': 'true' } },
        spec: { cidr: '10.200.0.0/16' },
        status: { cidr: '10.200.0.0/16' },
      },
    ],
    peers: [
      {
        metadata: { name: 'milan' },
        spec: { clusterID: 'milan' },
        status: {
          role: 'Provider',
          modules: {
            networking: { enabled: true, conditions: [{ type: 'NetworkConnectionStatus', status: 'Established' }] },
            authentication: {
              enabled: true,
              conditions: [{ type: 'AuthIdentityControlPlaneStatus', status: 'Established' }],
            },
            offloading: { enabled: true, conditions: [{ type: 'OffloadingNodeStatus', status: 'Ready' }] },
          },
        },
      },
    ],
    connections: [
      {
        metadata: { name: 'gw-milan', labels: label },
        spec: {},
        status: { value: 'Connected', latency: { value: '12ms' }, packetLoss: 0, mtu: 1340 },
      },
    ],
    virtualNodes: [
      { metadata: { name: 'milan' }, spec: { clusterID: 'milan', resourceQuota: { hard: { cpu: '2', pods: '20' } } } },
    ],
    quotas: [],
    offloadings: [
      { metadata: { name: 'offloading', namespace: 'shop' }, spec: {}, status: { offloadingPhase: 'Ready' } },
    ],
    pods: [{ metadata: { name: 'web', namespace: 'shop' }, spec: { nodeName: 'milan', containers: [] } }],
    ...more,
  }) as unknown as ClusterObjects;

const warningsWith = (more: Record<string, unknown>) => summarize(objects(more))?.warnings;

describe('the status of a cluster', () => {
  test('names peers with role, modules and link, slices, namespaces and pods', () => {
    const status = summarize(objects());
    expect(status).toMatchObject({
      clusterId: 'rome',
      agent: { ready: 2, wanted: 2 },
      ranges: [{ name: 'pod-cidr', cidr: '10.200.0.0/16' }],
      peers: [
        {
          id: 'milan',
          role: 'Provider',
          link: { value: 'Connected', roundTrip: '12ms', lossPercent: 0, mtu: 1340 },
          slices: [{ name: 'milan', direction: 'borrowed', granted: { cpu: '2', pods: '20' } }],
          offloadedPods: 1,
        },
      ],
      namespaces: [{ name: 'shop', phase: 'Ready', pods: 1 }],
      warnings: [],
    });
    if (status === undefined) throw new Error('no status');
    const text = statusText(status);
    expect(text).toMatch(/milan +Provider +Established +Established +Ready +Connected, 12ms, 0 % lost +1\n/);
    expect(text).toMatch(/milan +milan +borrowed +cpu 2, pods 20/);
  });

  test('tells what a provider lends and what of it is used', () => {
    const quota = {
      metadata: { name: 'q', labels: { ...label, 'liqo.io/resourceslice-name': 'milan' } },
      spec: { resources: { cpu: '2' } },
      status: { used: { cpu: '500m' } },
    };
    expect(summarize(objects({ virtualNodes: [], quotas: [quota] }))?.peers[0]?.slices).toMatchObject([
      { direction: 'lent', granted: { cpu: '2' }, used: { cpu: '500m' } },
    ]);
  });

  test('warns of what is not well', () => {
    expect(
      warningsWith({ agent: { spec: { replicas: 2, template: { spec: { containers: [] } } }, status: {} } }),
    ).toEqual(['0 of 2 replicas of the agent are ready']);
    expect(warningsWith({ broker: { spec: { url: 'https://b' }, status: { connected: false } } })).toEqual([
      'the broker https://b is away: no exchange yet',
    ]);
    const connection = { metadata: { labels: label }, spec: {}, status: { value: 'Error', packetLoss: 40 } };
    expect(warningsWith({ connections: [connection] })).toEqual([
      'peer milan: the link is Error',
      'peer milan: 40 % of the pings are lost',
    ]);
  });

  test('is about one peer where one is named, and nothing where nothing is installed', () => {
    expect(summarize(objects(), 'turin')?.peers).toEqual([]);
    expect(summarize(objects({ clusterId: undefined }))).toBeUndefined();
  });
});
