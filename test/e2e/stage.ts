/** Two installed clusters on real API servers, with what their kubelets and their tunnel would do played, and the little that scenarios share. */
import { expect } from 'vitest';
import { clusterRoleBindings, namespaces } from '#shared/domain/core-kinds.ts';
import { configurations } from '#shared/schema/liqo/configuration.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { ApiServer, TestApiServer } from '#test/harness/kube-apiserver.ts';
import {
  type ClusterPlan,
  type DeclaredCluster,
  playLink,
  startCluster,
  startOwnCluster,
} from '#test/system/declarative/cluster.ts';
import type { Target } from './liqoctl/requests.ts';

export interface Stage<S extends ApiServer = ApiServer> {
  readonly rome: DeclaredCluster<S>;
  readonly milan: DeclaredCluster<S>;
  /** With looks every 100 ms, where liqoctl's waits are not what is measured. */
  target(cluster: DeclaredCluster): Target;
  /** At liqoctl's own pace. */
  atItsPace(cluster: DeclaredCluster): Target;
  /** Waits until nothing of a peering is left but tenant namespaces. */
  nothingShared(): Promise<void>;
  withoutNamespaces(): Promise<void>;
  close(): Promise<void>;
}

const liqoNamespace = 'liqo';
const ranges = { podCidr: '10.200.0.0/16', externalCidr: '10.70.0.0/16' } as const;
const patience = { withinMs: 60_000 } as const;

export const openStage = (): Promise<Stage> => openOn(startCluster);

/** With API servers that the test may kill. */
export const openOwnStage = (): Promise<Stage<TestApiServer>> => openOn(startOwnCluster);

async function openOn<S extends ApiServer>(
  start: (plan: ClusterPlan) => Promise<DeclaredCluster<S>>,
): Promise<Stage<S>> {
  const [rome, milan] = await Promise.all([
    start({ id: 'rome', ...ranges, nodeAddress: '192.0.2.11' }),
    start({ id: 'milan', ...ranges, nodeAddress: '192.0.2.21' }),
  ]);
  const both = [rome, milan];
  const stop = new AbortController();
  const link = playLink(rome, milan, stop.signal);
  return {
    rome,
    milan,
    target: ({ api }) => ({ api, liqoNamespace, pollMs: 100 }),
    atItsPace: ({ api }) => ({ api, liqoNamespace }),
    async nothingShared() {
      await eventually(
        'nothing to be shared',
        async () => {
          for (const { api } of both)
            for (const type of [tenants, resourceSlices, virtualNodes, configurations])
              expect((await api.list(type as typeof tenants)).map(({ metadata }) => metadata.name)).toEqual([]);
          const bound = await milan.api.list(clusterRoleBindings, { labelSelector: 'liqo.io/remote-cluster-id=rome' });
          expect(bound).toEqual([]);
          return true;
        },
        patience,
      );
    },
    async withoutNamespaces() {
      for (const { api } of both)
        for (const name of ['liqo-tenant-rome', 'liqo-tenant-milan']) await api.delete(namespaces, { name });
      await eventually(
        'the namespaces to go',
        async () => {
          const all = await Promise.all(
            both.map(({ api }) => api.list(namespaces, { labelSelector: 'liqo.io/tenant-namespace' })),
          );
          return all.flat().length === 0;
        },
        patience,
      );
    },
    async close() {
      stop.abort();
      await link;
      await Promise.all(both.map((cluster) => cluster.stop()));
    },
  };
}
