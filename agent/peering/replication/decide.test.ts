/** Copies: what they look like, when they are corrected, what is never touched. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { label } from '#shared/domain/liqo-keys.ts';
import { decideCopy } from './decide.ts';
import type { Replicated } from './replica.ts';

const original = (
  spec: unknown,
  labels: Record<string, string> = {},
  annotations: Record<string, string> = {},
): Replicated => ({
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'ResourceSlice',
  metadata: {
    name: 'milan',
    namespace: 'liqo-tenant-milan',
    uid: 'u1',
    finalizers: ['crdreplicator.liqo.io/resource'],
    labels: {
      [label.replication]: 'true',
      [label.remoteId]: 'milan',
      [label.remoteClusterId]: 'milan',
      'liqo.io/ownership': 'x',
      ...labels,
    },
    annotations: { 'liqo.io/create-virtual-node': 'true', ...annotations },
  },
  spec,
});
const created = (from: Replicated): Replicated => {
  const step = decideCopy(from, undefined, 'rome', 'liqo-tenant-rome');
  if (step.do !== 'create') throw new Error(step.do);
  return { ...step.replica, metadata: { ...step.replica.metadata, uid: 'u2', resourceVersion: '7' } };
};

describe('a copy', () => {
  test('carries the rewritten labels, and nothing of the original that is its own', () => {
    expect(created(original({ class: 'default' })).metadata).toEqual({
      name: 'milan',
      namespace: 'liqo-tenant-rome',
      uid: 'u2',
      resourceVersion: '7',
      labels: {
        [label.replication]: 'false',
        [label.replicated]: 'true',
        [label.originId]: 'rome',
        [label.remoteId]: 'milan',
        [label.remoteClusterId]: 'rome',
      },
      annotations: { 'liqo.io/create-virtual-node': 'true' },
    });
  });

  test('is corrected until it is right, and then left alone', () => {
    const dictionary = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.stringMatching(/^[a-z0-9]{0,8}$/));
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.jsonValue(),
        dictionary,
        dictionary,
        dictionary,
        (spec, drifted, labels, annotations, theirs) => {
          const from = original(spec, labels, annotations);
          const copy = created(from);
          const changed = {
            ...copy,
            spec: drifted,
            metadata: { ...copy.metadata, labels: { ...theirs, ...copy.metadata.labels } },
          };
          const step = decideCopy(from, changed, 'rome', 'liqo-tenant-rome');
          const fixed = step.do === 'correct' ? step.replica : changed;
          expect(fixed.spec).toEqual(spec);
          expect(decideCopy(from, fixed, 'rome', 'liqo-tenant-rome')).toEqual({ do: 'nothing' });
        },
      ),
    );
  });

  test("keeps the provider's cordon against the consumer's annotations", () => {
    const copy = created(original({}));
    copy.metadata.annotations = {
      ...copy.metadata.annotations,
      'liqo.io/cordon-tenant': 'true',
      'liqo.io/cordon': 'true',
    };
    const from = original({}, {}, { 'liqo.io/cordon-tenant': 'false', 'liqo.io/cordon': 'false' });
    expect(decideCopy(from, copy, 'rome', 'liqo-tenant-rome')).toEqual({ do: 'nothing' });
  });

  test('that is being removed is waited for; an object that is no copy of ours is refused', () => {
    const copy = created(original({}));
    const going = { ...copy, metadata: { ...copy.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(decideCopy(original({}), going, 'rome', 'liqo-tenant-rome').do).toBe('wait');
    expect(decideCopy(original({}), copy, 'turin', 'liqo-tenant-rome').do).toBe('refuse');
  });
});
