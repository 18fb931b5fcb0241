import { expect, test } from 'vitest';
import { secrets } from '#shared/domain/core-kinds.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import type { AuditObject, Write } from './audit.ts';
import { type Seen, stepsOf } from './capture.ts';
import { textOf } from './file.ts';
import { Words } from './words.ts';

type Metadata = NonNullable<AuditObject['metadata']>;

function tenant(metadata: Partial<Metadata>, more: object = {}): AuditObject {
  const marks = { name: 'rome', namespace: 'ns', uid: 'u', resourceVersion: '7', ...metadata };
  return { apiVersion: 'authentication.liqo.io/v1beta1', kind: 'Tenant', metadata: marks, ...more };
}

function seen(user: string, verb: Write['verb'], more: Partial<Write>): Seen {
  const write: Write = {
    ...{ user, groups: [], program: 'x', verb, type: tenants, namespace: 'ns', name: 'rome', subresource: undefined },
    ...{ request: undefined, response: undefined, at: '', answeredAt: '' },
    ...more,
  };
  return { at: 'milan', write };
}

const steps = (all: readonly Seen[], known = {}) =>
  stepsOf(
    all,
    new Words(known),
    ({ user }) => (user === 'kubernetes' ? undefined : user),
    () => true,
  );
const status = { kind: 'Status' };
const id = { apiVersion: 'authentication.liqo.io/v1beta1', kind: 'Tenant' };
const who = { name: 'rome', namespace: 'ns' };

test('what Liqo creates is what it sent, what Isthmus makes of it is what changed, and only its last state before the next step of Liqo', () => {
  const sent = tenant({}, { spec: { a: 1 } });
  const after = (value: string) =>
    tenant({ finalizers: ['f', 'isthmus.dev/own'] }, { spec: { a: 1, b: 'defaulted' }, status: { value } });
  const made = steps([
    seen('liqoctl', 'create', { request: sent, response: tenant({}, { spec: { a: 1, b: 'defaulted' } }) }),
    seen('isthmus', 'patch', { response: after('on its way') }),
    seen('isthmus', 'patch', { response: after('there') }),
    seen('liqoctl', 'update', { response: { ...after('there'), spec: { a: 2 } } }),
  ]);
  expect(made).toEqual([
    { by: 'liqoctl', at: 'milan', create: { ...id, metadata: who, spec: { a: 1 } } },
    {
      ...{ by: 'isthmus', at: 'milan' },
      expect: { ...id, metadata: { ...who, finalizers: ['f'] }, status: { value: 'there' } },
    },
    { by: 'liqoctl', at: 'milan', update: { ...id, metadata: who, spec: { a: 2 } } },
  ]);
});

test('an object with a finalizer is gone when that is, one without at once', () => {
  const ending = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const made = steps([
    seen('liqoctl', 'create', { request: tenant({}), response: tenant({}) }),
    seen('isthmus', 'patch', { response: tenant({ finalizers: ['f'] }) }),
    seen('liqoctl', 'delete', { response: status }),
    seen('isthmus', 'patch', { response: tenant({ ...ending }) }),
    seen('replicator', 'create', { type: renews, response: tenant({}), request: tenant({}) }),
    seen('replicator', 'delete', { type: renews, response: status }),
  ]);
  expect(
    made.map(({ by, create, expect: wanted, delete: deleted, absent }) => [by, { create, wanted, deleted, absent }]),
  ).toEqual([
    ['liqoctl', { create: { ...id, metadata: who } }],
    ['isthmus', { wanted: { ...id, metadata: { ...who, finalizers: ['f'] } } }],
    ['liqoctl', { deleted: { ...id, metadata: who } }],
    ['isthmus', { absent: { ...id, metadata: who } }],
    ['replicator', { create: { ...id, kind: 'Renew', metadata: who } }],
    ['replicator', { deleted: { ...id, kind: 'Renew', metadata: who } }],
  ]);
});

test('of an answer that was cut to the metadata the step has what was sent, and what was there stays', () => {
  const cut = (labels: object) =>
    ({ kind: 'PartialObjectMetadata', metadata: { name: 'rome', labels } }) as AuditObject;
  const made = steps([
    seen('isthmus', 'create', { request: tenant({}, { spec: { a: 1 } }), response: cut({ l: 'by a webhook' }) }),
    seen('liqoctl', 'update', { response: tenant({}, { spec: { a: 1 }, status: { phase: 'Off', reason: 'x' } }) }),
    seen('isthmus', 'patch', {
      ...{ subresource: 'status', response: cut({}) },
      request: { status: { phase: 'Running', reason: null } } as AuditObject,
    }),
    seen('liqoctl', 'update', { response: tenant({}, { spec: { a: 2 }, status: { phase: 'Running' } }) }),
  ]);
  expect(made.filter(({ by }) => by === 'isthmus').map((step) => step.expect)).toEqual([
    { ...id, metadata: who, spec: { a: 1 } },
    { ...id, metadata: who, status: { phase: 'Running' } },
  ]);
  expect(made.at(-1)?.update).toEqual({ ...id, metadata: who, spec: { a: 2 } });
});

test('a write of the status is a step of the status only, a second deletion is none, and own marks are left out at any depth', () => {
  const conditions = [{ type: 'isthmus.dev/Own' }, { type: 'Ready' }];
  const bound = tenant({}, { spec: { nodeName: 'n' }, status: { conditions } });
  const ending = {
    ...bound,
    metadata: { ...bound.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['f'] },
  };
  const made = steps([
    seen('liqoctl', 'create', { request: tenant({}), response: tenant({}) }),
    seen('kubelet', 'patch', { subresource: 'status', response: bound }),
    seen('liqoctl', 'delete', { response: ending }),
    seen('liqoctl', 'delete', { response: ending }),
  ]);
  expect(made.slice(1)).toEqual([
    { by: 'kubelet', at: 'milan', status: { ...id, metadata: who, status: { conditions: [{ type: 'Ready' }] } } },
    { by: 'liqoctl', at: 'milan', delete: { ...id, metadata: who } },
  ]);
});

test('values that differ each time are words, wherever they are; a certificate that renews another has a number', () => {
  const words = new Words({ romeApiServer: 'https://192.0.2.1:6443' });
  expect(
    words.of(
      {
        metadata: { uid: 'u', name: 'n', creationTimestamp: null },
        url: 'https://192.0.2.1:6443',
        data: { nonce: 'bm8=', kubeconfig: 'x' },
        podIPs: [{ ip: '10.0.0.1' }],
        hostIPs: [{ ip: '10.0.0.2' }],
      },
      'rome',
    ),
  ).toEqual({
    metadata: { name: 'n' },
    url: '$romeApiServer',
    data: { nonce: '$nonce', kubeconfig: '$any' },
    podIPs: [{ ip: '$podIp' }],
    hostIPs: [{ ip: '$romeHostIp' }],
  });
});

test('a Secret says its data in words, and the file is read as it was meant', () => {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'liqo-nonce', namespace: 'ns' } };
  const one = { type: secrets, name: 'liqo-nonce', request: secret, response: secret };
  const made = steps([
    seen('liqoctl', 'create', one),
    seen('isthmus', 'update', { ...one, response: { ...secret, ...{ data: { nonce: 'bm8=' } } } }),
  ]);
  expect(
    textOf({ liqo: '1.2.0', isthmusIs: 'provider', steps: made }),
  ).toBe(`# Liqo 1.2.0 (in rome) as consumer, Isthmus (in milan) as provider: what was written, in order. Captured: README.md says how.

liqo: 1.2.0
isthmusIs: provider
steps:
  - by: liqoctl
    at: milan
    create: {apiVersion: v1, kind: Secret, metadata: {name: liqo-nonce, namespace: ns}}
  - by: isthmus
    at: milan
    expect: {apiVersion: v1, kind: Secret, metadata: {name: liqo-nonce, namespace: ns}, data: {nonce: $nonce}}
`);
});
