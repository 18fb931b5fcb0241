import { expect, test } from 'vitest';
import { capturedIo } from '#cli/captured-io.ts';
import type { KubeClient } from '#cli/cluster/open.ts';
import { createProgress, during, type Step } from '#cli/output/progress.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { waitForAgent, waitForFabric } from './apply.ts';

const away = new AppError('kube_unreachable', 'https://rome:6443 did not answer GET /api/v1/pods within 15 s');
const refused = new AppError('kube_forbidden', 'pods is forbidden');

/** Runs `wait`; the first two looks at an object, and then one at pods, end with `error`. */
async function outcomeOf(
  error: AppError,
  status: object,
  wait: (io: ReturnType<typeof capturedIo>, kube: KubeClient, step: Step, note: () => void) => Promise<unknown>,
): Promise<unknown> {
  let now = 0;
  const io: ReturnType<typeof capturedIo> = capturedIo({
    clock: {
      now: () => now,
      sleep: async (ms, signal) => {
        if (signal !== io.signal) return new Promise<void>(() => undefined);
        now += ms;
      },
    },
  });
  let gets = 0;
  let lists = 0;
  const kube: Pick<KubeClient, 'get' | 'list'> = {
    async get<T>() {
      gets += 1;
      if (gets <= 2) throw error;
      return { metadata: { generation: 1 }, spec: { replicas: 1 }, status: gets > 4 ? status : {} } as T;
    },
    async list() {
      lists += 1;
      if (lists === 1) throw error;
      return [];
    },
  };
  return during(createProgress(io), 'agent', (step) => wait(io, kube as KubeClient, step, () => undefined)).then(
    (told) => told ?? 'ended',
    (failure: unknown) => failure,
  );
}

const waits = [
  {
    what: 'the agent',
    status: { observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
    wait: (io, kube, step, note) => waitForAgent(io, kube, 60_000, step, note),
  },
  {
    what: 'node processes',
    status: { observedGeneration: 1, desiredNumberScheduled: 2, numberReady: 2, updatedNumberScheduled: 2 },
    wait: (io, kube, step, note) => waitForFabric(io, kube, 60_000, step, note),
  },
] as const satisfies readonly { what: string; status: object; wait: Parameters<typeof outcomeOf>[2] }[];

test.each(waits)(
  'the wait for $what goes on when the API server does not answer some looks',
  async ({ status, wait }) => {
    expect(await outcomeOf(away, status, wait)).toBe('ended');
  },
);

test.each(waits)('the wait for $what ends at once when the API server refuses', async ({ status, wait }) => {
  expect(await outcomeOf(refused, status, wait)).toBe(refused);
});

test('node processes that are not seen in time are told as missing', async () => {
  const silent = { get: async () => Promise.reject(away), list: async () => [] };
  const told = await outcomeOf(away, {}, (io, _, step, note) =>
    waitForFabric(io, silent as unknown as KubeClient, 3_000, step, note),
  );
  expect(told).toContain('the API server has not said where the node process runs');
});
