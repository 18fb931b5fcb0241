/** The objects of a link may arrive in any order, and the agent may restart between any two of them: the result is the same. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWireGuardKeys } from '#agent/pki/wireguard-keys.ts';
import { deployments, secrets, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  type GatewayClusters,
  namespace,
  peer,
  peerLabels,
  startGatewayClusters,
} from '#test/harness/gateway-clusters.ts';

let world: GatewayClusters;
beforeAll(async () => {
  world = await startGatewayClusters();
}, 300_000);
afterAll(async () => await world?.stop());

const steps: Readonly<Record<string, () => Promise<unknown>>> = {
  template: () => world.createTemplate('server'),
  gateway: () => world.createServer({ secretRef: { name: 'mine' } }),
  key: () => world.createKey(),
  secret: () => {
    const keys = createWireGuardKeys();
    const data = {
      privateKey: Buffer.from(keys.privateKey).toString('base64'),
      publicKey: Buffer.from(keys.publicKey).toString('base64'),
    };
    const metadata = { name: 'mine', namespace, labels: peerLabels };
    return world.cluster.api.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data });
  },
};

/** What matters of it: no uid, no time, no version, no address that the API server picks, nothing that Kubernetes' own controllers add sooner or later. */
const shape = (object: KubeObject): string =>
  JSON.stringify(object, (key, value: unknown) =>
    [
      'uid',
      'creationTimestamp',
      'resourceVersion',
      'managedFields',
      'generation',
      'observedGeneration',
      'lastTransitionTime',
      'clusterIP',
      'clusterIPs',
      'nodePort',
      'networking.isthmus.dev/applied',
      'networking.isthmus.dev/candidates',
      'networking.isthmus.dev/node-port',
      'endpoint',
      'conditions',
      'status',
      'deployment.kubernetes.io/revision',
    ].includes(key)
      ? undefined
      : value,
  );

async function result(): Promise<readonly string[]> {
  await world.reason('NoActivePod');
  await world.runPod('p1', 'n1', '10.200.1.5');
  const gateway = await world.reason('Ready');
  const { wgGatewayServers, connections } = networkKinds;
  await eventually('the Connection', async () => (await world.child(connections)).status?.value === 'Connecting');
  const wg = await world.cluster.api.get(wgGatewayServers, { namespace, name: peer });
  const children = await Promise.all(
    [deployments, services, connections].map((type) => world.child(type as ResourceType)),
  );
  expect(gateway.status?.internalEndpoint).toEqual({ ip: '10.200.1.5', node: 'n1' });
  return [gateway, wg as KubeObject, ...children].map(shape);
}

/** Fisher and Yates, from a small generator: the same orders each time. */
function shuffled(seed: number): readonly string[] {
  const order = Object.keys(steps);
  let state = seed;
  for (let i = order.length - 1; i > 0; i--) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    const j = state % (i + 1);
    [order[i], order[j]] = [order[j] ?? '', order[i] ?? ''];
  }
  return order;
}

test('orders of creation with restarts in between end in the same objects', async () => {
  const results: (readonly string[])[] = [];
  for (const seed of [1, 2, 3, 5, 8, 13]) {
    const order = shuffled(seed);
    world.startAgent();
    for (const [i, step] of order.entries()) {
      await steps[step]?.();
      if ((seed + i) % 3 !== 0) continue;
      await world.stopAgent();
      world.startAgent();
    }
    results.push(await result());
    await world.cluster.api.delete(secrets, { namespace, name: 'mine' });
    await world.cluster.api.delete(networkKinds.wgGatewayServerTemplates, {
      namespace: 'liqo',
      name: 'wireguard-server',
    });
    // The garbage collector may not know our kinds in its first half minute.
    await world.clean().catch(() => world.clean());
    await world.stopAgent();
  }
  for (const other of results) expect(other).toEqual(results[0]);
}, 180_000);
