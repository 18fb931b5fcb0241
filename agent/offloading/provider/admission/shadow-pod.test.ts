import { expect, test } from 'vitest';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { validateChange } from './shadow-pod.ts';

const shadow = (resources: unknown): ShadowPod =>
  ({
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'ShadowPod',
    metadata: { name: 'web', namespace: 'demo' },
    spec: { pod: { containers: [{ name: 'app', image: 'web:1', resources }] } },
  }) as unknown as ShadowPod;

const big = { requests: { cpu: '4', memory: '1Gi' }, limits: { cpu: '4' } };

test('a guest makes its pod smaller by a smaller amount', () => {
  const smaller = { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1' } };
  expect(validateChange(shadow(big), shadow(smaller), 'rome').allowed).toBe(true);
});

test.each([
  ['containers[0].resources.requests.cpu', { requests: { memory: '1Gi' }, limits: { cpu: '4' } }],
  ['containers[0].resources.limits.cpu', { requests: { cpu: '4', memory: '1Gi' } }],
  ['containers[0].resources.requests.cpu', undefined],
  ['containers[0].resources.requests.cpu', { requests: null, limits: { cpu: '4' } }],
])('an amount that a living pod would keep cannot be left out: %s', (field, after) => {
  const verdict = validateChange(shadow(big), shadow(after), 'rome');
  expect(verdict).toMatchObject({ allowed: false, code: 'invalid_input' });
  expect('message' in verdict && verdict.message).toContain(`spec.pod.${field} is gone`);
});
