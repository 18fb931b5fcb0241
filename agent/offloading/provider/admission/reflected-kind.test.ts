import { describe, expect, test } from 'vitest';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { validateReflectedKind } from './reflected-kind.ts';

const policy = {
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringPolicy',
  metadata: { name: 'p' },
  spec: { asProvider: { enabled: true, peers: ['*'] }, reflectedKinds: ['service', 'serviceaccount'] },
} as unknown as PeeringPolicy;
const object = (kind: string, metadata: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name: 'one', namespace: 'demo-cons', ...metadata },
});
const consumer = { name: 'slice-cons', groups: ['cons'] };
const validate = (one: KubeObject, user = consumer) => validateReflectedKind({ object: one, user }, 'cons', [policy]);

describe('a consumer whose policy has kinds service and serviceaccount', () => {
  test.each(['ConfigMap', 'Secret', 'Ingress', 'PersistentVolumeClaim', 'ShadowEndpointSlice'])(
    'may send no %s',
    (kind) =>
      expect(validate(object(kind))).toMatchObject({
        allowed: false,
        code: 'policy_refused',
        message: expect.stringContaining('accept spec.reflectedKinds service, serviceaccount of cons'),
      }),
  );
  test.each([
    ['a Service', object('Service')],
    ['the tokens of a pod', object('Secret', { labels: { 'offloading.liqo.io/nodename': 'milan' } })],
    ['a kind that the list is not about', object('ShadowPod')],
    ['finalizers of what goes', object('Secret', { deletionTimestamp: '2026-01-01T00:00:00Z' })],
  ])('may send %s', (_name, one) => expect(validate(one)).toEqual({ allowed: true }));
});

test('other writers of the namespace are not looked at', () => {
  expect(validate(object('ConfigMap'), { name: 'system:kube-controller-manager', groups: ['system:masters'] })).toEqual(
    {
      allowed: true,
    },
  );
});
