import { expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { type ApplyDeps, apply } from './apply.ts';
import type { Action } from './decide.ts';
import { context } from './testing/local-and-remote.ts';

const local: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'demo', name: 'web', uid: 'l1', labels: { 'liqo.io/shadowPod': 'true' } },
  spec: { nodeName: 'vn1', containers: [{ name: 'app', image: 'app:1' }] },
};
const shadow = {
  apiVersion: 'offloading.liqo.io/v1beta1',
  kind: 'ShadowPod',
  metadata: { namespace: 'demo-cons', name: 'web', uid: 's1' },
  spec: { pod: local.spec },
} as ShadowPod;
const actions: readonly Action[] = [
  { do: 'updateShadow', uid: 's1', patch: [{ op: 'add', path: '/spec/pod/containers/0/image', value: 'app:2' }] },
  { do: 'status', patch: { phase: 'Running' } },
];

/** What is told of refusals is not what the tests below are about. */
function depsWith(api: KubeApi, peer: KubeApi): ApplyDeps {
  return {
    local: { api, events: { emit: () => undefined } },
    peer,
    log: silentLog,
    written: { wrote: () => undefined, deleted: () => undefined },
    creator: { get: () => undefined, learn: () => undefined },
    refusals: { count: () => 1, forget: () => undefined },
  };
}

test('a condition of a readiness gate that was set since the pod was read is not overwritten', async () => {
  const written: object[] = [];
  const api = {
    mergePatch: async (_type: unknown, _ref: unknown, { metadata }: { metadata: object }) =>
      void written.push(metadata),
  } as unknown as KubeApi;
  const conditions: Action[] = [{ do: 'status', patch: { conditions: [] } }];
  const read = { ...local, metadata: { ...local.metadata, resourceVersion: '7' } };
  const gated = { ...read, spec: { ...read.spec, readinessGates: [{ conditionType: 'c' }] } } as Pod;
  for (const [pod, what] of [
    [gated, conditions],
    [gated, [{ do: 'status', patch: { phase: 'Running' } }]],
    [read, conditions],
  ] as const) {
    const subject = { key: 'demo/web', local: pod, shadow, remoteNamespace: 'demo-cons', context };
    await apply(what, subject, depsWith(api, {} as KubeApi), new AbortController().signal);
  }
  expect(written).toEqual([{ uid: 'l1', resourceVersion: '7' }, { uid: 'l1' }, { uid: 'l1' }]);
});

test('a provider that refuses a change is asked again ever more rarely, the pod says why, and its status still comes', async () => {
  const said: string[] = [];
  const statuses: unknown[] = [];
  const counts = new Map<string, number>();
  const peer = {
    jsonPatch: async () => {
      throw new AppError('kube_invalid', 'admission webhook "quota" denied the request: cpu exceeded');
    },
  } as unknown as KubeApi;
  const api = {
    mergePatch: async (_type: unknown, _ref: unknown, body: { status?: unknown }) => void statuses.push(body.status),
  } as unknown as KubeApi;
  const deps: ApplyDeps = {
    local: { api, events: { emit: (_about, type, reason, message) => said.push(`${type} ${reason} ${message}`) } },
    peer,
    log: silentLog,
    written: { wrote: () => undefined, deleted: () => undefined },
    creator: { get: () => undefined, learn: () => undefined },
    refusals: {
      count(key) {
        counts.set(key, (counts.get(key) ?? 0) + 1);
        return counts.get(key) ?? 0;
      },
      forget: (key) => void counts.delete(key),
    },
  };
  const subject = { key: 'demo/web', local, shadow, remoteNamespace: 'demo-cons', context };
  const pauses: number[] = [];
  for (let i = 0; i < 10; i++) {
    const outcome = await apply(actions, subject, deps, new AbortController().signal);
    pauses.push(outcome.kind === 'waiting' ? outcome.afterMs : 0);
  }
  expect(statuses).toEqual(Array.from({ length: 10 }, () => ({ phase: 'Running' })));
  expect(new Set(said)).toEqual(
    new Set([
      'Warning FailedReflection cluster prov refused the change of the pod, which goes on as it was: admission webhook "quota" denied the request: cpu exceeded',
    ]),
  );
  expect(pauses.slice(0, 4)).toEqual([500, 1_000, 2_000, 4_000]);
  expect(pauses.at(-1)).toBe(30_000);
});
