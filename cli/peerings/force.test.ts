import { describe, expect, test } from 'vitest';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import { evidenceOf, leftBehind, seenTwiceMs } from './force.ts';

const nowMs = Date.UTC(2026, 0, 2);
const ago = (ms: number): string => new Date(nowMs - ms).toISOString();
const condition = (type: string, status: string, ageMs: number) => ({ type, status, lastTransitionTime: ago(ageMs) });
const foreign = (api: object[], link: object[] = []): ForeignCluster =>
  ({
    apiVersion: 'core.liqo.io/v1beta1',
    kind: 'ForeignCluster',
    metadata: { name: 'milan' },
    spec: { clusterID: 'milan' },
    status: { conditions: api, modules: { networking: { enabled: link.length > 0, conditions: link } } },
  }) as unknown as ForeignCluster;

describe('a peer is taken for gone', () => {
  const dead = condition('APIServerStatus', 'Error', seenTwiceMs);
  test.each([
    { when: 'its API server failed two looks', said: foreign([dead]), kind: 'gone' },
    {
      when: 'the link is down for as long',
      said: foreign([], [condition('NetworkConnectionStatus', 'Error', 60_000)]),
      kind: 'gone',
    },
    { when: 'not after one look', said: foreign([condition('APIServerStatus', 'Error', 1_000)]), kind: 'early' },
    {
      when: 'not while its API server answers',
      said: foreign([condition('APIServerStatus', 'Established', 1)]),
      kind: 'alive',
    },
    {
      when: 'not while the link answers, even when the API server does not',
      said: foreign([dead], [condition('NetworkConnectionStatus', 'Established', 90_000)]),
      kind: 'alive',
    },
    { when: 'not without any witness', said: foreign([]), kind: 'none' },
  ])('$when', ({ said, kind }) => {
    expect(evidenceOf(said, nowMs).kind).toBe(kind);
  });

  test('the second look comes when the first is old enough', () => {
    const early = evidenceOf(foreign([condition('APIServerStatus', 'Error', 1_000)]), nowMs);
    expect(early).toMatchObject({ kind: 'early', waitMs: seenTwiceMs - 1_000 });
  });
});

test('what stays behind is told by what was shared', () => {
  const slices = [{ apiVersion: 'x', kind: 'ResourceSlice', metadata: { name: 'gpu' } }];
  const all = {
    self: 'rome',
    peer: 'milan',
    slices,
    pods: 3,
    isProvider: true,
    isLinked: true,
    remoteNamespace: 'there',
  };
  const said = leftBehind(all);
  expect(said.every((line) => line.startsWith('milan: '))).toBe(true);
  expect(said.join('\n')).toMatch(
    /there with Tenant rome.*gpu\n.*3 pods of rome\n.*virtual nodes.*\n.*its end of the link/,
  );
  expect(leftBehind({ ...all, slices: [], isProvider: false, isLinked: false })).toEqual([]);
});
