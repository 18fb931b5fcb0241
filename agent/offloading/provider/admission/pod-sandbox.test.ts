import { expect, test } from 'vitest';
import { validateGuestPod } from './pod-sandbox.ts';

const containers = [{ name: 'main', image: 'web:1' }];

test('volumes that show nothing of the node are taken', () => {
  const volumes = [
    { name: 'scratch', emptyDir: {} },
    { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
  ];
  expect(validateGuestPod({ containers, volumes })).toMatchObject({ allowed: true });
});

test('a volume that shows files of the node is refused by name', () => {
  const verdict = validateGuestPod({ containers, volumes: [{ name: 'root', hostPath: { path: '/' } }] });
  expect(verdict).toMatchObject({ allowed: false, message: expect.stringContaining('volume root') });
});
