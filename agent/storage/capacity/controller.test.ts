/** What is written of free storage when an API server refuses a part of it. */
import { expect, test } from 'vitest';
import type { Cluster } from '#kube/model/types.ts';
import { csiStorageCapacities, type StorageClass, storageClasses } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { createCapacityController } from './controller.ts';

const isthmus = { metadata: { name: 'isthmus' }, provisioner: 'storage.isthmus.dev' } as StorageClass;
const virtualNode = (clusterID: string): KubeObject =>
  ({ metadata: { name: clusterID }, spec: { clusterID, storageClasses: [{ storageClassName: 'fast' }] } }) as never;
const known: ReadonlyMap<string, readonly unknown[]> = new Map([
  [storageClasses.plural, [isthmus]],
  [virtualNodes.plural, ['milan', 'naples', 'turin'].map(virtualNode)],
]);

test('the refusal of one object keeps none of the others back', async () => {
  const stop = new AbortController();
  const asked: unknown[] = [];
  const cluster = {
    api: {
      async create(type: ResourceType, { nodeTopology }: { nodeTopology?: { matchLabels?: object } }) {
        asked.push([type.plural, nodeTopology?.matchLabels]);
        if (asked.length === 3) stop.abort();
        if (asked.length === 1) throw new AppError('kube_invalid', 'it is refused');
      },
    },
    caches: {
      cache({ plural }: ResourceType) {
        const list = () => known.get(plural) ?? [];
        const subscribe = (listener: (change: object) => void) => {
          for (const after of list()) listener({ after });
          return () => undefined;
        };
        return { list, subscribe, synced: async () => undefined };
      },
    },
  } as unknown as Cluster;
  const controller = createCapacityController({ cluster, clock: new ManualClock(), log: silentLog });
  const patience = setTimeout(() => stop.abort(), 5_000);
  await controller.run(stop.signal);
  clearTimeout(patience);
  expect(asked).toEqual(
    ['milan', 'naples', 'turin'].map((id) => [csiStorageCapacities.plural, { 'liqo.io/remote-cluster-id': id }]),
  );
});
