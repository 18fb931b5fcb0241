import { expect, test } from 'vitest';
import { hurriedGrace, lostKubeletMs } from './forced-end.ts';

const at = (ms: number): string => new Date(ms).toISOString();
const pod = (deletionMs?: number, deletionGracePeriodSeconds?: number) => ({
  metadata: {
    name: 'p',
    ...(deletionMs !== undefined && { deletionTimestamp: at(deletionMs) }),
    ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
  },
});

test('a pod is left alone until the deadline, then has one second, and is deleted without its kubelet when that is lost', () => {
  const deadline = 1_000_000;
  expect(hurriedGrace(pod(), deadline, deadline - 1)).toBeUndefined();
  expect(hurriedGrace(pod(), deadline, deadline)).toBe(1);
  expect(hurriedGrace(pod(deadline + 31_536_000_000, 31_536_000), deadline, deadline)).toBe(1);
  expect(hurriedGrace(pod(deadline + 1_000, 1), deadline, deadline + 1_000)).toBeUndefined();
  expect(hurriedGrace(pod(deadline + 1_000, 1), deadline, deadline + 1_000 + lostKubeletMs)).toBe(0);
  // Long dead, on a node that was lost before the deadline.
  expect(hurriedGrace(pod(5_000, 0), deadline, deadline)).toBeUndefined();
  expect(hurriedGrace(pod(5_000, 0), deadline, deadline + lostKubeletMs)).toBe(0);
});
