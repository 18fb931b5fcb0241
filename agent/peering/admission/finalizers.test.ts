import { expect, test } from 'vitest';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { validateFinalizers } from './finalizers.ts';

const shadow = (...finalizers: string[]) => ({ metadata: { name: 'web', finalizers } }) as unknown as ShadowPod;

test('a finalizer of the consumer is refused, those of garbage collection and those that are there already pass', () => {
  expect(validateFinalizers(shadow('example.com/stay'), undefined)).toMatchObject({
    allowed: false,
    code: 'sandbox_refused',
    message: expect.stringContaining('metadata.finalizers has example.com/stay'),
  });
  expect(validateFinalizers(shadow('old', 'foregroundDeletion'), shadow('old')).allowed).toBe(true);
  expect(validateFinalizers(shadow(), undefined).allowed).toBe(true);
  // It would leave behind what the provider made of the object.
  expect(validateFinalizers(shadow('orphan'), undefined)).toMatchObject({ allowed: false });
  expect(validateFinalizers(shadow('orphan'), shadow('orphan')).allowed).toBe(true);
});
