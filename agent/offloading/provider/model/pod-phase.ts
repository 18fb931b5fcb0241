/** Phases of pods. */
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';

export const isFinished = ({ status }: ShadowPod): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed';
