/** What is known of a volume of claim shop/data that moves from milan to genoa. */
import { timestamp } from '#kube/writes/conditions.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { moveFinalizer, storageAnnotation } from '#shared/domain/storage-keys.ts';
import type { MovePhase, VolumeMove, VolumeMoveStatus } from '#shared/schema/isthmus/volume-move.ts';
import type { Facts, Step } from '../facts.ts';

const nowMs = Date.parse('2026-01-01T10:00:00Z');
export const since = (minutes: number): string => timestamp(nowMs - minutes * 60_000);
export const deletionTimestamp = since(1);

export const volume = (name: string, more: { uid?: string; phase?: string; policy?: string; noted?: string } = {}) =>
  ({
    metadata: { name, ...(more.noted && { annotations: { [storageAnnotation.policyAfterMove]: more.noted } }) },
    spec: {
      persistentVolumeReclaimPolicy: more.policy ?? 'Retain',
      claimRef: { namespace: 'shop', name: 'data', ...(more.uid && { uid: more.uid }) },
    },
    status: { phase: more.phase ?? 'Released' },
  }) as unknown as PersistentVolume;
export const claim = (uid: string, volumeName: string, metadata: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { namespace: 'shop', name: 'data', uid, ...metadata },
    spec: { volumeName, resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Bound' },
  }) as unknown as PersistentVolumeClaim;

export function facts(
  phase: MovePhase,
  minutes: number,
  { isDeleted = false, status = {}, ...more }: Partial<Facts> & { isDeleted?: boolean; status?: object } = {},
): Facts {
  const move = {
    metadata: {
      namespace: 'shop',
      name: 'data',
      uid: 'm',
      finalizers: [moveFinalizer],
      ...(isDeleted && { deletionTimestamp }),
    },
    spec: { target: 'genoa', undoWindowSeconds: 60 },
    status: {
      phase,
      since: since(minutes),
      way: 'forth',
      claimUid: 'c',
      from: { at: 'milan', volume: 'a' },
      to: { at: 'genoa', volume: 'b' },
      claim: JSON.stringify({ spec: { resources: { requests: { storage: '1Gi' } } } }),
      ...status,
    } as VolumeMoveStatus,
  } as VolumeMove;
  const nothing = { claim: undefined, staging: undefined, from: undefined, to: undefined, refusal: undefined };
  const rest = { progress: undefined, silent: undefined, real: 'silent' as const, left: undefined, image: 'agent' };
  return { move, nowMs, ...nothing, ...rest, pods: [], keys: false, service: false, mountedBy: [], ...more };
}
export const phaseOf = (step: Step): string => (step.do === 'status' ? step.status.phase : step.do);
