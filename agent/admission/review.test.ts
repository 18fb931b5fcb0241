import { expect, test } from 'vitest';
import { parseReview } from './review.ts';

const asked = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u1',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    operation: 'CREATE',
    name: 'web',
    namespace: 'shop',
    dryRun: false,
    userInfo: { username: 'slice-1', groups: ['milan', 'system:authenticated'], extra: { more: ['x'] } },
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', labels: { app: 'web' }, annotations: null },
      spec: { containers: [] },
    },
    oldObject: null,
  },
};

test('a question of an API server is taken, and one that is none says which field is wrong', () => {
  expect(parseReview(JSON.stringify(asked))).toMatchObject({ uid: 'u1', name: 'web', user: { name: 'slice-1' } });
  const wrong = { ...asked, request: { ...asked.request, operation: 'TOUCH' } };
  expect(() => parseReview(JSON.stringify(wrong))).toThrow(/^request\.operation: .*send an AdmissionReview/);
});

test.each([
  { options: { propagationPolicy: 'Orphan' }, is: true },
  { options: { orphanDependents: true }, is: true },
  { options: { propagationPolicy: 'Background' }, is: undefined },
  { options: { orphanDependents: false }, is: undefined },
  { options: null, is: undefined },
])('a deletion with $options leaves behind what the object owns: $is', ({ options, is }) => {
  const { object, ...request } = asked.request;
  const deletion = { ...asked, request: { ...request, operation: 'DELETE', oldObject: object, options } };
  expect(parseReview(JSON.stringify(deletion)).isOrphaning).toBe(is);
});
