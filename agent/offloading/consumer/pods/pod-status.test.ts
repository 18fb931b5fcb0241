import { expect, test } from 'vitest';
import type { Pod, PodStatus } from '#shared/domain/kube-object.ts';
import { reflectedStatus } from './pod-status.ts';

const [gate, early, now] = ['example.com/in-balancer', '2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z'];
const condition = (type: string, status: string, at: string = early) => ({ type, status, lastTransitionTime: at });

function pod(conditions: readonly object[], gates: readonly string[] = [gate]): Pod {
  const spec = { containers: [{ name: 'app' }], readinessGates: gates.map((conditionType) => ({ conditionType })) };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec, status: { conditions } } as Pod;
}
const remote = pod([condition('ContainersReady', 'True'), condition('Ready', 'True')], []);
const readyOf = (status: PodStatus) => status.conditions?.find(({ type }) => type === 'Ready');
const reflect = (local: Pod, of = remote) =>
  reflectedStatus({ local, remote: of, hostIp: '10.0.0.1', restarts: {}, available: true, now });

test('a pod with a readiness gate is ready when a controller of this cluster has set the condition, not before', () => {
  const before = reflect(pod([]));
  expect(readyOf(before)).toEqual({
    ...condition('Ready', 'False', now),
    reason: 'ReadinessGatesNotReady',
    message: `corresponding condition of pod readiness gate "${gate}" does not exist.`,
  });
  const said = condition(gate, 'False');
  const waiting = reflect(pod([condition('Ready', 'False'), said]));
  expect(waiting.conditions).toContainEqual(said);
  expect(readyOf(waiting)).toMatchObject({ status: 'False', lastTransitionTime: early });
  const open = reflect(pod([condition('Ready', 'False'), condition(gate, 'True')]));
  expect(readyOf(open)).toEqual(condition('Ready', 'True', now));
});

test('what the provider says of a readiness gate comes first, and a pod that is not ready there is not ready here', () => {
  const there = pod([condition(gate, 'False'), condition('Ready', 'True')], []);
  const status = reflect(pod([condition(gate, 'True')]), there);
  expect(status.conditions?.filter(({ type }) => type === gate)).toEqual([condition(gate, 'False')]);
  expect(readyOf(status)).toMatchObject({ status: 'False' });
  const unready = pod([{ ...condition('Ready', 'False'), reason: 'ContainersNotReady' }], []);
  expect(readyOf(reflect(pod([condition(gate, 'True')]), unready))).toMatchObject({ reason: 'ContainersNotReady' });
});

test('conditions of a pod without readiness gates are those of its remote pod', () => {
  expect(reflect(pod([condition('example.com/other', 'True')], [])).conditions).toEqual(remote.status?.conditions);
});
