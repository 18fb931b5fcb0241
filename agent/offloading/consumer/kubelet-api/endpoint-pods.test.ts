import { describe, expect, test } from 'vitest';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import type { ObjectRef, Pod } from '#shared/domain/kube-object.ts';
import type { Mapping } from '../pods/decide.ts';
import type { ProviderSession } from '../virtual-node/provider-session.ts';
import { endpointPods } from './endpoint-pods.ts';

const stop = new AbortController();
const connection = { of: 'milan' };
const connected = {
  provider: { connection },
  remote: (namespace: string) => (namespace === 'demo' ? { remote: 'demo-rome' } : undefined),
} as unknown as ProviderSession;
const pod = (name: string, phase: string) => ({ metadata: { namespace: 'demo', name }, status: { phase } }) as Pod;

interface Given {
  readonly mapping?: Mapping;
  readonly session?: ProviderSession;
}
function served({ mapping, session }: Given) {
  const lists: unknown[] = [];
  const api = {
    list: async (...asked: unknown[]) => {
      lists.push(asked[1]);
      return [pod('web', 'Running'), pod('job', 'Succeeded')];
    },
  } as unknown as KubeApi;
  const localPods = {
    get: ({ namespace, name }: ObjectRef) => (name === 'web' ? { metadata: { namespace, name } } : undefined),
  } as unknown as Cache<Pod>;
  const pods = endpointPods({ nodeName: 'milan', api, localPods, mapping: () => mapping, session: () => session });
  return { ...pods, lists };
}

const accepted: Mapping = { kind: 'accepted', remoteNamespace: 'demo-rome' };

describe('where a pod runs at the provider', () => {
  test.each<Given>([
    { mapping: accepted, session: connected },
    // What runs there can be reached also while its namespace there is on its way out, or its NamespaceMap unknown.
    { mapping: { kind: 'held', why: 'it is being deleted' }, session: connected },
    { session: connected },
  ])('is said while its namespace is followed there (%j)', (given) => {
    expect(served(given).target('demo', 'web')).toEqual({ connection, remoteNamespace: 'demo-rome' });
  });

  test.each<[string, string, Given, string]>([
    ['demo', 'other', { mapping: accepted, session: connected }, 'pod demo/other is not on node milan'],
    ['demo', 'web', { mapping: { kind: 'none' }, session: connected }, 'namespace demo is not offloaded to node milan'],
    ['own', 'web', { mapping: accepted, session: connected }, 'namespace own is not offloaded to node milan'],
    ['demo', 'web', { mapping: accepted }, 'node milan has no connection to its provider'],
    ['demo', 'web', { mapping: { kind: 'none' } }, 'namespace demo is not offloaded to node milan'],
  ])('is not found for %s/%s (case %#)', (namespace, name, given, message) => {
    const { target } = served(given);
    expect(() => target(namespace, name)).toThrow(expect.objectContaining({ code: 'not_found', message }));
  });
});

test('the list of pods is that of the API server for this node, with those only that run when that is asked', async () => {
  const { podList, lists } = served({ session: connected });
  const all = await podList(false, stop.signal);
  expect(all).toMatchObject({ kind: 'PodList', items: [{ metadata: { name: 'web' } }, { metadata: { name: 'job' } }] });
  const running = (await podList(true, stop.signal)) as { readonly items: readonly Pod[] };
  expect(running.items.map(({ metadata }) => metadata.name)).toEqual(['web']);
  expect(lists).toEqual([{ fieldSelector: 'spec.nodeName=milan' }, { fieldSelector: 'spec.nodeName=milan' }]);
});
