import { expect, test } from 'vitest';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { validateFinalizers } from './shadow-pod.ts';

const shadow = (...finalizers: string[]) => ({ metadata: { name: 'web', finalizers } }) as unknown as ShadowPod;

test('a finalizer of the consumer is refused, those of garbage collection and those that are there already pass', () => {
  expect(validateFinalizers(undefined, shadow('example.com/stay'))).toMatchObject({
    allowed: false,
    code: 'sandbox_refused',
    message: expect.stringContaining('metadata.finalizers has example.com/stay'),
  });
  expect(validateFinalizers(shadow('old'), shadow('old', 'foregroundDeletion')).allowed).toBe(true);
  expect(validateFinalizers(undefined, shadow()).allowed).toBe(true);
});
