import { describe, expect, test } from 'vitest';
import { capturedIo } from '#cli/captured-io.ts';
import type { KubeClient } from '#cli/cluster/open.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { waitForAgent } from './apply.ts';
import { pullTroubleOf } from './image-pull.ts';

const image = 'isthmus.dev/agent:0.1.0';
const waiting = (node: string, reason: string, message = ''): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `agent-${node}` },
  spec: { nodeName: node, containers: [{ name: 'controller-manager', image }] },
  status: {
    containerStatuses: [
      {
        name: 'controller-manager',
        image: '',
        imageID: '',
        ready: false,
        restartCount: 0,
        state: { waiting: { reason, ...(message && { message }) } },
      },
    ],
  },
});

test.each([
  { reason: 'ErrImagePull', message: 'not found', said: 'ErrImagePull: not found' },
  { reason: 'ImagePullBackOff', message: '', said: 'ImagePullBackOff' },
  { reason: 'InvalidImageName', message: 'bad', said: 'InvalidImageName: bad' },
  { reason: 'ContainerCreating', message: '', said: undefined },
  { reason: 'CrashLoopBackOff', message: 'back-off', said: undefined },
])('$reason is trouble with the image: $said', ({ reason, message, said }) => {
  expect(pullTroubleOf(waiting('n1', reason, message))).toEqual(said && { image, node: 'n1', said });
});

/** Three looks: two nodes that cannot pull, in changing words; then the agent runs, unless it never does. */
async function watched(recovers: boolean) {
  let now = 0;
  let looks = 0;
  const texts: { readonly at: number; readonly text: string }[] = [];
  const io: ReturnType<typeof capturedIo> = capturedIo({
    onErr: (text) => void texts.push({ at: now, text }),
    clock: {
      now: () => now,
      // Of a wait; what a step would say later is not of interest.
      sleep: async (ms, signal) => {
        if (signal !== io.signal) return new Promise<void>(() => undefined);
        now += ms;
      },
    },
  });
  const kube: Pick<KubeClient, 'get' | 'list'> = {
    get: async <T>() => {
      looks += 1;
      const n = recovers && looks > 3 ? 2 : 0;
      return {
        metadata: { generation: 1 },
        spec: { replicas: 2 },
        status: { observedGeneration: 1, replicas: 2, updatedReplicas: n, availableReplicas: n },
      } as T;
    },
    list: async <T>() =>
      [
        waiting('n1', looks === 1 ? 'ErrImagePull' : 'ImagePullBackOff', 'not found'),
        ...(looks === 1 ? [] : [waiting('n2', 'ErrImagePull', 'not found')]),
      ] as T[],
  };
  const progress = createProgress(io);
  const outcome = await during(progress, 'agent', (step) =>
    waitForAgent(io, kube as KubeClient, 5_000, step, progress.note),
  ).then(
    () => undefined,
    (error: unknown) => error,
  );
  return { outcome, texts, said: (part: string) => texts.filter(({ text }) => text.includes(part)) };
}

describe('an image that nodes cannot get', () => {
  test('is told at the first look, once for each node, with what to do, and waiting goes on', async () => {
    const { outcome, said } = await watched(true);
    expect(outcome).toBeUndefined();
    const first = said(`node n1 cannot get the image ${image}: ErrImagePull: not found`);
    expect(first.map(({ at }) => at)).toEqual([0]);
    expect(said('node n2 cannot get')).toHaveLength(1);
    expect(said('cannot get the image')).toHaveLength(2);
    expect(said('not found')).toHaveLength(2);
    expect(said(`waiting for image ${image} on node n1`)).not.toHaveLength(0);
    expect(said('to do: ').map(({ text }) => text)).toEqual([
      expect.stringMatching(/--image.*npm run image.*goes on as soon as the image is there\n$/),
    ]);
  });

  test('is what to mend when time is over', async () => {
    const { outcome } = await watched(false);
    expect(outcome).toMatchObject({
      code: 'deadline_exceeded',
      message: expect.stringContaining('ImagePullBackOff: not found'),
      detail: { remedy: expect.stringContaining(`load ${image} into the container runtime of every node`) },
    });
  });
});
