import { afterEach, expect, test } from 'vitest';
import type { Change, Cluster } from '#kube/model/types.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { createSnapshotUsage } from './snapshot-usage.ts';

const stop: AbortController[] = [];
afterEach(() => {
  for (const one of stop.splice(0)) one.abort();
});

const object = (kind: string, name: string, labels: Record<string, string>): KubeObject => ({
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind,
  metadata: { name, labels, ...(kind === 'VolumeSnapshot' && { namespace: 'shop-rome' }) },
});

/** A cluster whose kinds of snapshots are served from `serve()` on. */
function provider(...objects: KubeObject[]) {
  let isServed = false;
  const listeners = new Map<string, (change: Change<KubeObject>) => void>();
  const now = new Map(objects.map((one) => [`${one.kind} ${one.metadata.name}`, one]));
  const of = (kind: string): KubeObject[] => [...now.values()].filter((one) => one.kind === kind);
  const cluster = {
    api: {
      async list() {
        if (!isServed) throw new AppError('kube_not_found', 'the API server does not know the kind', { detail: {} });
        return [];
      },
    },
    caches: {
      cache: ({ kind }: ResourceType) => ({
        list: () => of(kind),
        synced: async () => undefined,
        isSynced: () => true,
        subscribe(listener: (change: Change<KubeObject>) => void) {
          listeners.set(kind, listener);
          for (const after of of(kind)) listener({ after } as Change<KubeObject>);
          return () => listeners.delete(kind);
        },
      }),
    },
  } as unknown as Cluster;
  return {
    cluster,
    serve: () => {
      isServed = true;
    },
    remove(kind: string, name: string) {
      const before = now.get(`${kind} ${name}`);
      now.delete(`${kind} ${name}`);
      listeners.get(kind)?.({ before } as Change<KubeObject>);
    },
  };
}

function started({ cluster }: ReturnType<typeof provider>) {
  const clock = new ManualClock();
  const changed: string[] = [];
  const usage = createSnapshotUsage({ cluster, clock, log: silentLog }, (consumer) => changed.push(consumer));
  const abort = new AbortController();
  stop.push(abort);
  void usage.controller.run(abort.signal);
  const names = (consumer: string): string[] => usage.of(consumer).map(({ metadata }) => metadata.name);
  return { clock, changed, names };
}

test('snapshots of a consumer and contents that are kept for it count, and none of another consumer or of the provider', async () => {
  const milan = provider(
    object('VolumeSnapshot', 'monday', { 'isthmus.dev/guest': 'rome' }),
    object('VolumeSnapshot', 'of-another', { 'isthmus.dev/guest': 'turin' }),
    object('VolumeSnapshotContent', 'kept', { 'isthmus.dev/kept-for': 'rome' }),
    object('VolumeSnapshotContent', 'living', { 'isthmus.dev/guest': 'rome' }),
    object('VolumeSnapshotContent', 'own', {}),
  );
  milan.serve();
  const { changed, names } = started(milan);
  await expect.poll(() => new Set(changed)).toEqual(new Set(['rome', 'turin']));
  expect(names('rome')).toEqual(['monday', 'kept']);
  changed.length = 0;
  milan.remove('VolumeSnapshotContent', 'kept');
  await expect.poll(() => changed).toEqual(['rome']);
  expect(names('rome')).toEqual(['monday']);
});

test('a cluster without the kinds of snapshots has none that count, until they are installed', async () => {
  const milan = provider(object('VolumeSnapshot', 'monday', { 'isthmus.dev/guest': 'rome' }));
  const { clock, changed, names } = started(milan);
  await expect.poll(() => clock.sleeping).toBe(1);
  expect(names('rome')).toEqual([]);
  milan.serve();
  clock.advance(15_000);
  await expect.poll(() => changed).toEqual(['rome']);
  expect(names('rome')).toEqual(['monday']);
});
