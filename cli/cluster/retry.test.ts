import { expect, test } from 'vitest';
import type { KubeClient } from '#cli/cluster/open.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { orLater, retryAll, retryReads } from './retry.ts';

const signal = new AbortController().signal;

/** Time passes only while something sleeps. */
function clock() {
  let now = 0;
  return {
    now: () => now,
    sleep: async (ms: number) => {
      now += ms;
    },
  };
}

function failing(times: number, code: ErrorCode, wrap = retryReads) {
  const asked: string[] = [];
  const answer = async <T>(what: string, value: T): Promise<T> => {
    asked.push(what);
    if (asked.length <= times) throw new AppError(code, 'storage is (re)initializing');
    return value;
  };
  const kube = {
    get: () => answer('get', undefined),
    list: () => answer('list', []),
    apply: () => answer('apply', {}),
    delete: () => answer('delete', undefined),
  } as unknown as KubeClient;
  return { asked, kube: wrap({ clock: clock(), signal }, kube) };
}

test('what the API server does not serve for a moment is read again', async () => {
  const one = failing(3, 'kube_throttled');
  await expect(one.kube.get(namespaces, { name: 'liqo' })).resolves.toBeUndefined();
  expect(one.asked).toHaveLength(4);
  const all = failing(3, 'kube_throttled');
  await expect(all.kube.list(namespaces)).resolves.toEqual([]);
  expect(all.asked).toHaveLength(4);
});

test('what it does not serve for 10 s is said, with the kind', async () => {
  const { kube } = failing(Number.POSITIVE_INFINITY, 'kube_throttled');
  await expect(kube.list(namespaces)).rejects.toMatchObject({
    code: 'deadline_exceeded',
    message: expect.stringContaining('namespaces'),
  });
});

test('another refusal is passed on at once, and writes are not repeated', async () => {
  const refused = failing(1, 'kube_forbidden');
  await expect(refused.kube.list(namespaces)).rejects.toMatchObject({ code: 'kube_forbidden' });
  const written = failing(1, 'kube_throttled');
  const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'liqo' } };
  await expect(written.kube.apply(namespaces, object, 'test')).rejects.toMatchObject({ code: 'kube_throttled' });
  expect(written.asked).toEqual(['apply']);
});

test('a command that must not stop half-way outlasts an API server that is away for a moment', async () => {
  const one = failing(3, 'kube_unreachable', retryAll);
  await expect(one.kube.delete(namespaces, { name: 'liqo' })).resolves.toBeUndefined();
  expect(one.asked).toEqual(['delete', 'delete', 'delete', 'delete']);
  const gone = failing(Number.POSITIVE_INFINITY, 'kube_unreachable', retryAll);
  await expect(gone.kube.list(namespaces)).rejects.toMatchObject({ code: 'kube_unreachable' });
  const refused = failing(1, 'kube_forbidden', retryAll);
  await expect(refused.kube.delete(namespaces, { name: 'liqo' })).rejects.toMatchObject({ code: 'kube_forbidden' });
});

test.each([
  ['kube_unreachable', undefined],
  ['kube_throttled', undefined],
  ['kube_forbidden', 'refused'],
] as const)('a look of a wait that ends with %s is repeated only where time may help', async (code, expected) => {
  const look = orLater(() => Promise.reject(new AppError(code, 'refused')));
  expect(await look.catch((error: Error) => error.message)).toBe(expected);
  expect(await orLater(async () => 'there')).toBe('there');
});
