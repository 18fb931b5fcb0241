import { expect, test } from 'vitest';
import type { KubeClient } from '#cli/cluster/open.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { agentFailure } from './agent-failure.ts';

const asked: string[] = [];
function clusterOf(status: object | undefined, { conditions = [] as object[], log = 'boom' as string | null } = {}) {
  asked.length = 0;
  const pod = (name: string, at: string, of: object): Pod =>
    ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'liqo', creationTimestamp: at },
      spec: { nodeName: 'n1', containers: [{ name: 'agent', image: 'agent:2' }] },
      status: of,
    }) as unknown as Pod;
  const former = pod('former', '2026-11-22T00:00:00Z', { conditions: [{ type: 'Ready', status: 'True' }] });
  return {
    get: async () => ({ status: { conditions } }),
    list: async () => [former, ...(status === undefined ? [] : [pod('new', '2026-11-22T01:00:00Z', status)])],
    path: async (path: string) => {
      asked.push(path);
      if (log === null) throw new AppError('kube_failed', 'no kubelet');
      return `${log}\n`;
    },
  } as unknown as KubeClient;
}
const container = (of: object) => ({
  containerStatuses: [{ name: 'agent', image: 'agent:2', restartCount: 0, ...of }],
});
const unready = [{ type: 'Ready', status: 'False' }];

test.each([
  [
    'an image that is not there',
    clusterOf(container({ state: { waiting: { reason: 'ImagePullBackOff', message: 'gone' } } })),
    /^node n1 cannot get the image agent:2: ImagePullBackOff: gone$/,
    /--image/,
  ],
  [
    'pods that are refused',
    clusterOf(undefined, { conditions: [{ type: 'ReplicaFailure', status: 'True', message: 'exceeded quota' }] }),
    /refuses to make its pod: exceeded quota/,
    /isthmus check/,
  ],
  [
    'a pod that no node takes',
    clusterOf({ conditions: [...unready, { type: 'PodScheduled', status: 'False', message: '0/1 nodes' }] }),
    /no node takes its pod: 0\/1 nodes/,
    /describe pods/,
  ],
  [
    'a process that is not ready',
    clusterOf({ conditions: unready }, { log: 'forbidden: cannot list secrets' }),
    /does not say that it is ready; its log ends with:\nforbidden: cannot list secrets/,
    /--timeout/,
  ],
  ['no new pod', clusterOf(undefined), /not all of the new version yet/, /describe deployment/],
])('of %s the reason and what to do are said', async (_what, kube, text, remedy) => {
  const found = await agentFailure(kube);
  expect(found.text).toMatch(text);
  expect(found.remedy).toMatch(remedy);
});

test.each([
  [
    'ended before it was started again',
    { lastState: { terminated: { exitCode: 3, reason: 'Error' } }, restartCount: 2 },
    true,
  ],
  ['ended now', { state: { terminated: { exitCode: 3, reason: 'Error' } } }, false],
])('of a process that %s its code and its last lines are said', async (_what, of, isPast) => {
  const { text, remedy } = await agentFailure(clusterOf(container(of)));
  expect(text).toMatch(/^it ended with code 3 \(Error\)[\s\S]*its log ends with:\nboom/);
  expect(asked[0]?.includes('previous=true')).toBe(isPast);
  expect(remedy.endsWith('--previous')).toBe(isPast);
});

test('a log that no kubelet gives is left out, and a long one is cut', async () => {
  const ended = container({ state: { terminated: { exitCode: 3 } } });
  expect((await agentFailure(clusterOf(ended, { log: null }))).text).toBe('it ended with code 3');
  expect((await agentFailure(clusterOf(ended, { log: 'x'.repeat(10_000) }))).text.length).toBeLessThan(1_000);
});
