import { describe, expect, test } from 'vitest';
import type { Pod } from '#shared/domain/kube-object.ts';
import { awaited } from '../decide.ts';
import type { ClusterFacts, DoctorFacts } from '../facts.ts';
import { ownPods, unsettled, webhooks } from './agent.ts';
import type { View } from './rule.ts';

const now = Date.parse('2026-11-23T12:00:00Z');
const ago = (seconds: number): string => new Date(now - seconds * 1_000).toISOString();

interface Made {
  readonly age: number;
  readonly state?: object;
  readonly ready?: boolean;
}
const pod = ({ age, state = { waiting: { reason: 'ContainerCreating' } }, ready = false }: Made): Pod =>
  ({
    metadata: { name: 'isthmus-agent-1', namespace: 'liqo', creationTimestamp: ago(age) },
    spec: { nodeName: 'rome-1', containers: [{ name: 'c', image: 'i' }] },
    status: {
      phase: 'Pending',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      containerStatuses: [{ name: 'c', image: 'i', restartCount: 0, state }],
    },
  }) as unknown as Pod;

const view = (pods: readonly Pod[], more: object = {}, agentStatus: object = { readyReplicas: 0 }): View => {
  const agent = { spec: { replicas: 1 }, status: agentStatus };
  const facts = {
    ownPods: pods,
    status: { agent },
    webhooks: { registered: true },
    ...more,
  } as unknown as ClusterFacts;
  const looked = { cluster: 'rome', server: 's', kubectl: 'kubectl', installed: true, unread: [], facts };
  const all: DoctorFacts = { now, clusters: [looked] };
  return { ...looked, all };
};

describe('before it answers, the doctor waits for a pod of ours', () => {
  test.each<[string, readonly Pod[], number]>([
    ['that has just been made and says nothing yet', [pod({ age: 3 })], 1],
    ['that is not made yet', [], 1],
    ['but not for one that runs', [pod({ age: 3, ready: true })], 0],
    ['but not for one whose image is missing', [pod({ age: 3, state: { waiting: { reason: 'ErrImagePull' } } })], 0],
    ['but not for one that has ended', [pod({ age: 3, state: { terminated: { exitCode: 2 } } })], 0],
    ['but not for one that has had a minute', [pod({ age: 61 })], 0],
  ])('%s', (_title, pods, count) => {
    expect(unsettled(view(pods, {}, { readyReplicas: pods.length === 0 ? 0 : 1 }))).toHaveLength(count);
  });

  test('and not where the API server refuses it', () => {
    const status = { readyReplicas: 0, conditions: [{ type: 'ReplicaFailure', status: 'True' }] };
    expect(unsettled(view([], {}, status))).toEqual([]);
  });

  test('unless what was found can be the cause of that too', () => {
    const { all } = view([pod({ age: 3 })]);
    const finding = (code: 'crds_differ' | 'link_silent') => ({ code, at: 'rome', text: '', evidence: [], todo: '' });
    expect(awaited(all, [finding('crds_differ')])).toEqual([]);
    expect(awaited(all, [finding('link_silent')])).toEqual(['pod liqo/isthmus-agent-1 of rome']);
  });
});

test('a container that ended is a finding before it is started again', () => {
  const [found] = ownPods(view([pod({ age: 3, state: { terminated: { exitCode: 2, message: 'no-url' } } })]));
  expect(found).toMatchObject({ code: 'agent_crashes', evidence: [expect.stringContaining('exit code 2: no-url')] });
});

describe('a Service of the webhooks that leads nowhere', () => {
  const running = { readyReplicas: 1 };
  const asked = (service: object, more: object = {}, status: object = running) =>
    webhooks(view([], { webhooks: { registered: true, service, ...more } }, status));

  test('is found although the API server still calls over an open connection', () => {
    expect(asked({ selector: 'app=nothing', endpoints: 0 })).toMatchObject([
      {
        code: 'webhook_unreachable',
        evidence: [expect.stringContaining('app=nothing'), expect.stringContaining('open')],
      },
    ]);
    expect(asked({ selector: undefined, endpoints: 0 })).toMatchObject([
      { evidence: [expect.stringContaining('not there'), expect.anything()] },
    ]);
  });

  test('is none with an endpoint, or while the agent does not run', () => {
    expect(asked({ selector: 'app=x', endpoints: 1 })).toEqual([]);
    expect(asked({ selector: 'app=x', endpoints: 0 }, {}, { readyReplicas: 0 })).toEqual([]);
  });
});
