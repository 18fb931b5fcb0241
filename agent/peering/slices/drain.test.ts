/** How the drain of a slice ends at its deadline, with pods that take their time. */
import { expect, test } from 'vitest';
import type { Cluster } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { ResourceSlice } from '#shared/schema/liqo/resource-slice.ts';
import { endDrain } from './drain.ts';

const deadline = Date.parse('2026-01-01T00:00:00Z');
const slice = {
  metadata: {
    name: 'here',
    namespace: 'liqo-tenant-rome',
    annotations: { 'isthmus.dev/drain': new Date(deadline).toISOString() },
  },
} as unknown as ResourceSlice;
const year = 31_536_000;

/** A cluster with one pod, which no kubelet ends. */
function clusterWith(pod: KubeObject | undefined, shadows: readonly KubeObject[] = []) {
  const deleted: unknown[] = [];
  const api = {
    list: async ({ kind }: { kind: string }) => (kind === 'Pod' ? [pod].filter((one) => one !== undefined) : shadows),
    delete: async (
      { kind }: { kind: string },
      { name }: { name: string },
      { gracePeriodSeconds }: { gracePeriodSeconds?: number },
    ) => {
      deleted.push([kind, name, gracePeriodSeconds]);
      return true;
    },
  };
  return { deleted, cluster: { api, events: { emit: () => undefined } } as unknown as Pick<Cluster, 'api' | 'events'> };
}
const end = (cluster: Pick<Cluster, 'api' | 'events'>, now: number) =>
  endDrain({ ...cluster, clock: { now: () => now } as never }, slice, 'rome', AbortSignal.timeout(5_000));

test('at the deadline a pod that has a year to end gets one second, and when its kubelet is lost none', async () => {
  const stays = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'stays',
      namespace: 'apps',
      deletionTimestamp: new Date(deadline + year * 1_000).toISOString(),
      deletionGracePeriodSeconds: year,
    },
  };
  const before = clusterWith(stays);
  expect(await end(before.cluster, deadline - 1)).toMatchObject({ kind: 'again' });
  expect(before.deleted).toEqual([]);
  const at = clusterWith(stays);
  expect(await end(at.cluster, deadline)).toMatchObject({ kind: 'again' });
  expect(at.deleted).toEqual([['Pod', 'stays', 1]]);
  const hurried = {
    ...stays,
    metadata: {
      ...stays.metadata,
      deletionTimestamp: new Date(deadline + 1_000).toISOString(),
      deletionGracePeriodSeconds: 1,
    },
  };
  const lost = clusterWith(hurried);
  await end(lost.cluster, deadline + 31_000);
  expect(lost.deleted).toEqual([['Pod', 'stays', 0]]);
});

test('the drain has ended when neither ShadowPods nor pods are left', async () => {
  const shadow = {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'ShadowPod',
    metadata: { name: 'a', namespace: 'apps' },
  };
  const left = clusterWith(undefined, [shadow]);
  expect(await end(left.cluster, deadline)).toMatchObject({ kind: 'again' });
  expect(left.deleted).toEqual([['ShadowPod', 'a', undefined]]);
  expect(await end(clusterWith(undefined).cluster, deadline)).toBeUndefined();
});
