/** What `kubectl get foreignclusters` shows, with a real API server and a real kubectl. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { customResourceDefinition } from '#shared/schema/crd.ts';
import {
  type ForeignClusterConditionStatus,
  type ForeignClusterConditionType,
  type ForeignClusterStatus,
  foreignClusters,
} from '#shared/schema/liqo/foreign-cluster.ts';
import { eventually } from '#test/harness/eventually.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { must } from '#test/harness/program.ts';

let server: TestApiServer;
let dir: string;
const kubectl = async (...args: readonly string[]): Promise<string> =>
  (await must(server.kubebox, ['kubectl', '--kubeconfig', server.kubeconfigPath, ...args])).stdout;

async function apply(object: object, ...more: readonly string[]): Promise<void> {
  const file = path.join(dir, 'object.json');
  await writeFile(file, JSON.stringify(object));
  await eventually('the API server takes it', async () => {
    await kubectl('apply', '--server-side', '-f', file, ...more);
    return true;
  });
}

beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-columns-'));
  server = await startApiServer();
  await apply(customResourceDefinition(foreignClusters));
}, 900_000);
afterAll(async () => {
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

type Conditions = readonly (readonly [ForeignClusterConditionType, ForeignClusterConditionStatus])[];
const module = (conditions: Conditions) => ({
  enabled: conditions.length > 0,
  conditions: conditions.map(([type, status]) => ({ type, status })),
});

async function peer(name: string, annotations: object, status: ForeignClusterStatus): Promise<void> {
  const foreign = {
    apiVersion: 'core.liqo.io/v1beta1',
    kind: 'ForeignCluster',
    metadata: { name, annotations },
    spec: { clusterID: name },
  };
  await apply(foreign);
  await apply({ ...foreign, status }, '--subresource=status', '--force-conflicts');
}

test('kubectl get foreignclusters shows role, type and one word for each part of a peering', async () => {
  await peer(
    'milan',
    { [isthmusAnnotation.peeringType]: 'OutOfBand' },
    {
      role: 'Provider',
      modules: {
        networking: module([
          ['NetworkConfigurationStatus', 'Ready'],
          ['NetworkGatewayPresence', 'Ready'],
          ['NetworkConnectionStatus', 'Established'],
        ]),
        authentication: module([['AuthIdentityControlPlaneStatus', 'Ready']]),
        offloading: module([
          ['OffloadingNodeStatus', 'NotReady'],
          ['OffloadingVirtualNodeStatus', 'Ready'],
        ]),
      },
    },
  );
  await peer(
    'naples',
    {},
    {
      role: 'Consumer',
      modules: {
        networking: module([]),
        authentication: module([['AuthTenantStatus', 'Ready']]),
        offloading: module([]),
      },
    },
  );
  const lines = (await kubectl('get', 'foreignclusters')).trimEnd().split('\n');
  expect(lines.map((line) => line.replace(/\s+\S+$/, '').split(/\s+/))).toEqual([
    ['NAME', 'ROLE', 'TYPE', 'NETWORKING', 'AUTHENTICATION', 'OFFLOADING'],
    ['milan', 'Provider', 'OutOfBand', 'Established', 'Ready', 'NotReady'],
    ['naples', 'Consumer', 'Ready'],
  ]);
  expect(lines[0]).toMatch(/AGE$/);
});
