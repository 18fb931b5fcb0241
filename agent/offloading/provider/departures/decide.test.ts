import { expect, test } from 'vitest';
import type { Namespace, Pod } from '#shared/domain/kube-object.ts';
import { decide } from './decide.ts';

const start = Date.parse('2026-01-01T00:00:00Z');
const at = (seconds: number): string => new Date(start + seconds * 1_000).toISOString();
const pod = (metadata: object = {}): Pod =>
  ({
    metadata: { name: 'p', ownerReferences: [{ kind: 'ShadowPod', uid: 'u', controller: true }], ...metadata },
  }) as Pod;
const going = { metadata: { name: 'apps', deletionTimestamp: at(0) } } as Namespace;
const staying = { metadata: { name: 'apps' } } as Namespace;
const judge = (one: Pod, namespace: Namespace | undefined, seconds: number) =>
  decide({ pod: one, namespace, maxGraceSeconds: 600, nowMs: start + seconds * 1_000 });

test('a pod that asked for a year before the policy came has what the policy allows', () => {
  const deletion = { deletionTimestamp: at(31_536_000), deletionGracePeriodSeconds: 31_536_000 };
  expect(judge(pod(deletion), staying, 1)).toMatchObject({ do: 'delete', graceSeconds: 600 });
  expect(judge(pod({ ...deletion, deletionGracePeriodSeconds: 600 }), staying, 1)).toEqual({ do: 'nothing' });
});

test('pods in a namespace that goes have as long as the policy allows, then a second, then none', () => {
  const deletion = { deletionTimestamp: at(600), deletionGracePeriodSeconds: 600 };
  expect(judge(pod(deletion), going, 599)).toEqual({ do: 'look', inMs: 1_000 });
  expect(judge(pod(deletion), going, 600)).toMatchObject({ do: 'delete', graceSeconds: 1 });
  expect(judge(pod(), going, 600)).toMatchObject({ do: 'delete', graceSeconds: 1 });
  const hurried = { deletionTimestamp: at(601), deletionGracePeriodSeconds: 1 };
  expect(judge(pod(hurried), going, 602)).toEqual({ do: 'look', inMs: 30_000 });
  expect(judge(pod(hurried), going, 631)).toMatchObject({ do: 'delete', graceSeconds: 0 });
});

test('pods that were not made for a ShadowPod, and those in namespaces that stay, are left alone', () => {
  expect(judge(pod({ ownerReferences: [] }), going, 10_000)).toEqual({ do: 'nothing' });
  expect(judge(pod(), staying, 10_000)).toEqual({ do: 'nothing' });
  expect(judge(pod(), undefined, 10_000)).toEqual({ do: 'nothing' });
});
