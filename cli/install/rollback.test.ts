/** What an update that failed takes away again. */
import { expect, test } from 'vitest';
import { capturedIo } from '#cli/captured-io.ts';
import type { KubeClient } from '#cli/cluster/open.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { removeAdded } from './rollback.ts';
import { storageManifests } from './storage-manifests.ts';

const absent = storageManifests({ className: 'liqo', capacityClassName: 'isthmus', isDefault: false });

/** By `KIND NAME`. */
async function removedBeside(claims: readonly KubeObject[]): Promise<string[]> {
  const removed: string[] = [];
  const kube = {
    list: async (_: unknown, __: unknown, namespace: string) => (namespace === 'liqo-storage' ? claims : []),
    delete: async ({ kind }: { kind: string }, { name }: { name: string }) => {
      removed.push(`${kind} ${name}`);
      return true;
    },
  } as unknown as KubeClient;
  await removeAdded(capturedIo({}), kube, { image: 'agent:1', applied: [], absent });
  return removed;
}

test('what it brought goes, last first, but no namespace with claims that its agent has made for volumes', async () => {
  const all = absent.map(({ kind, metadata }) => `${kind} ${metadata.name}`).reverse();
  expect(await removedBeside([])).toEqual(all);
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'u-1' } };
  expect(await removedBeside([claim])).toEqual(all.filter((name) => name !== 'Namespace liqo-storage'));
});
