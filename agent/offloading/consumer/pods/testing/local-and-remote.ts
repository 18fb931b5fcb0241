/** A pod of this cluster, its ShadowPod and its remote pod at the provider, as tests of decisions about them start from. */
import type { Pod } from '#shared/domain/kube-object.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import type { Context } from '../decide.ts';
import { shadowPod } from '../shadow-pod-object.ts';

export const context: Context = {
  consumer: 'cons',
  provider: 'prov',
  nodeName: 'vn1',
  hostIp: '10.1.1.1',
  remoteRanges: [{ real: '10.0.0.0/8', view: '10.0.0.0/8' }],
  isLinked: true,
  now: '2026-01-01T00:00:00Z',
};
export const accepted = { kind: 'accepted', remoteNamespace: 'demo-cons' } as const;
export const none = { kind: 'none' } as const;

interface Change {
  readonly metadata?: Partial<Pod['metadata']>;
  readonly status?: unknown;
}
export const local = ({ metadata, status }: Change = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'demo', uid: 'l1', labels: { 'liqo.io/shadowPod': 'true' }, ...metadata },
    spec: { containers: [{ name: 'app', image: 'i:1' }] },
    status: status ?? { phase: 'Pending' },
  }) as Pod;
export const shadow = (change: { uid?: string; status?: unknown; metadata?: object } = {}): ShadowPod => {
  const made = shadowPod({ ...context, pod: local(), remoteNamespace: 'demo-cons' });
  return {
    ...made,
    metadata: { ...made.metadata, uid: change.uid ?? 's1', ...change.metadata },
    status: change.status ?? { phase: 'Pending' },
  } as ShadowPod;
};
export const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2025-12-31T00:00:00Z' };
export const running = {
  phase: 'Running',
  podIP: '10.9.0.1',
  podIPs: [{ ip: '10.9.0.1' }],
  hostIP: '1.1.1.1',
  conditions: [{ ...ready, observedGeneration: 7 }],
  containerStatuses: [{ name: 'app', ready: true, restartCount: 1 }],
};
export const remote = ({ metadata, status }: Change = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      namespace: 'demo-cons',
      uid: 'r1',
      annotations: { 'isthmus.dev/local-pod-uid': 'l1' },
      ownerReferences: [
        { apiVersion: 'offloading.liqo.io/v1beta1', kind: 'ShadowPod', name: 'web', uid: 's1', controller: true },
      ],
      ...metadata,
    },
    status: status ?? running,
  }) as Pod;
export const gone = { deletionTimestamp: '2026-01-01T00:00:00Z' };
