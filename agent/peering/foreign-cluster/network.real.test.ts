/** The networking module of a peer's summary on a real API server, from the first Configuration to the last object gone. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemIds } from '#agent/runtime/ids.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { deployments, pods } from '#shared/domain/core-kinds.ts';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  type GatewayClusters,
  namespace,
  peer,
  peerLabels,
  startGatewayClusters,
} from '#test/harness/gateway-clusters.ts';
import { createForeignClusterController } from './controller.ts';

let world: GatewayClusters;
const stop = new AbortController();
let ended: Promise<void>;

beforeAll(async () => {
  world = await startGatewayClusters();
  await world.createTemplate('server');
  world.startAgent();
  const deps = { clock: systemClock, log: silentLog };
  ended = createForeignClusterController({
    ...deps,
    cluster: openCluster(await connectKubeconfig(world.kubeconfig), deps, stop.signal),
    clusterId: 'rome',
    ids: systemIds,
    config: { apiServerUrl: 'https://rome', apiServerCa: '', systemNamespace: 'liqo', credentials: 'certificate' },
  }).run(stop.signal);
}, 300_000);
afterAll(async () => {
  stop.abort();
  await ended;
  await world?.stop();
});

const networking = async (): Promise<string | undefined> => {
  const found = (await world.cluster.api.get(foreignClusters, { name: peer }))?.status?.modules.networking;
  return (
    found && [found.enabled, ...(found.conditions ?? []).map(({ status, reason }) => `${status}/${reason}`)].join(' ')
  );
};
const reads = (wanted: string) =>
  eventually(wanted, async () => {
    const now = await networking();
    if (now !== wanted) throw new Error(now);
    return true;
  });

test('a summary follows Configuration, gateway, pods and Connection, and goes after the last of them', async () => {
  const { api } = world.cluster;
  const { configurations, connections } = networkKinds;
  const metadata = { name: peer, namespace, labels: peerLabels };
  const remote = { cidr: { pod: ['10.200.0.0/16'], external: ['10.70.0.0/16'] } };
  const { apiVersion, kind } = { apiVersion: apiVersionOf(configurations), kind: configurations.kind };
  await api.create(configurations, { apiVersion, kind, metadata, spec: { remote } });
  await reads('true Ready/NetworkConfigurationPresence NotReady/GatewayMissing NotReady/ConnectionMissing');
  const present = 'true Ready/NetworkConfigurationPresence Ready/GatewayPresence';
  await world.createServer();
  await reads(`${present} NotReady/GatewaysNotReady NotReady/ConnectionMissing`);
  await world.child(deployments);
  const ref = { namespace, name: `gw-${peer}` };
  await eventually('ready replicas count', async () => {
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: new Date().toISOString() }];
    for (const { metadata } of await api.list(pods, { namespace }))
      await api.mergePatch(
        pods,
        { namespace, name: metadata.name },
        { status: { phase: 'Running', conditions } },
        { subresource: 'status' },
      );
    return (await networking())?.includes('Ready/GatewaysReady');
  });
  await world.createKey();
  await eventually('a pending link', async () => (await networking())?.endsWith('Pending/ConnectionPending'));
  for (const [value, condition] of [
    ['Connected', 'Established/ConnectionEstablished'],
    ['Error', 'Error/ConnectionError'],
  ] as const) {
    await api.mergePatch(connections, ref, { status: { value } }, { subresource: 'status' });
    await eventually(condition, async () => (await networking())?.endsWith(condition));
  }
  // The garbage collector may not know our kinds in its first half minute.
  await world.clean().catch(() => world.clean());
  await reads('true Ready/NetworkConfigurationPresence NotReady/GatewayMissing NotReady/ConnectionMissing');
  await api.delete(configurations, { namespace, name: peer });
  await eventually('no summary', async () => !(await api.get(foreignClusters, { name: peer })));
  expect(await networking()).toBeUndefined();
});
