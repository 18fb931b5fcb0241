/** A second peer of cluster A, which is thereby a hub: programmed by hand like B, while A learns of it by objects alone. */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { pods } from '#shared/domain/core-kinds.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '../../../harness/eventually.ts';
import { TestCluster, type TestPod, wireGuardKeys } from '../../../harness/netns-cluster.ts';
import { type GatewayReplica, type NodeClusters, port } from './node-clusters.ts';
import { createInternalFabric, createLinkObjects } from './objects.ts';

const id = 'turin';
const view = { pods: '10.81.0.0/16', external: '10.82.0.0/16' };

export interface Leaf {
  readonly cluster: TestCluster;
  readonly pod: TestPod;
  /** An address of the leaf's pods as the hub calls it. */
  view(real: string): string;
}

export async function addLeaf(clusters: NodeClusters): Promise<Leaf> {
  const cluster = new TestCluster(clusters.netns, clusters.underlay, 'c', 3);
  const node = await cluster.addNode();
  const end = await cluster.addLink('to-a', node, 'server', clusters.a, { pods: 71, external: 72 });
  const keys = wireGuardKeys();
  end.peer = { publicKey: keys.publicKey };
  await cluster.exposeNodePort(end);
  const pod = await cluster.addPod(node, 5);
  await cluster.program();
  await pod.netns.serve(port);
  const responder = fileURLToPath(new URL('liqo-ping.mjs', import.meta.url));
  node.netns.start(process.execPath, responder, '12345');

  await createLinkObjects(clusters, { id, remote: cluster, publicKey: end.publicKey, view });
  const gatewayPod = await clusters.a.addPod(clusters.a.nodes[0]!, 111);
  const wireguard = await clusters.startGateway(gatewayPod, keys.privateKey);
  const replica: GatewayReplica = { name: `gw-${id}-1`, uid: randomUUID(), pod: gatewayPod, wireguard };
  await clusters.createPod(replica, id);
  await eventually('its gateway is active', async () => {
    const labelSelector = 'networking.liqo.io/active=true';
    return (await clusters.cluster.api.list(pods, { namespace: `liqo-tenant-${id}`, labelSelector })).length === 1;
  });
  await createInternalFabric(clusters, gatewayPod.ip, { id, view }, 2);
  await eventually('the leaf is Connected', async () => {
    const ref = { namespace: `liqo-tenant-${id}`, name: `gw-${id}` };
    return (await clusters.cluster.api.get(networkKinds.connections, ref))?.status?.value === 'Connected';
  });
  return { cluster, pod, view: (real) => real.replace('10.200.', '10.81.') };
}
