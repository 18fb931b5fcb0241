/** Policies of offloaded namespaces on two peered clusters: names, selectors, gates, drains, and both directions at once. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { namespaces, pods } from '#shared/domain/core-kinds.ts';
import type { ResourceType } from '#shared/domain/kube-object.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { acceptGuests } from '#test/harness/guest-policy.ts';
import { startSteadyNode } from '#test/harness/steady-node.ts';
import { peer } from '../peering/broker-part.ts';
import type { Pair } from '../peering/clusters.ts';
import {
  isReady,
  makeNamespace,
  offload,
  offloadedNamespace,
  offloadingOf,
  pod,
  podAt,
  reaches,
  report,
  shadowOf,
  soon,
  startOffloadingPair,
} from './offloading-clusters.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startOffloadingPair();
}, 900_000);
afterAll(async () => await pair?.stop());

const here = () => pair.consumer.api;
const there = () => pair.provider.api;
const conditionsOf = async (namespace: string) =>
  (await offloadingOf(here(), namespace))?.status?.remoteNamespacesConditions?.milan;
const change = (namespace: string, spec: object) =>
  here().mergePatch(namespaceOffloadings, { namespace, name: 'offloading' }, { spec });
const events = (namespace: string) => here().getPath(`/apis/events.k8s.io/v1/namespaces/${namespace}/events`);
const select = (key: string, value: string) => ({
  clusterSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: [value] }] }] },
});
const milanOnly = select('liqo.io/remote-cluster-id', 'milan');
const nobody = select('liqo.io/remote-cluster-id', 'nowhere');

test('B038 B039 a name that is taken at the provider fails the offloading, harms no other object, and heals by itself', async () => {
  await acceptGuests(there(), { namespaces: ['clash'] });
  // A cluster with any policy peers as a consumer only where one says so.
  onTestFinished(async () => {
    await there().delete(peeringPolicies, { name: 'guests' });
  });
  await makeNamespace(there(), 'clash');
  const theirs = await there().get(namespaces, { name: 'clash' });
  await makeNamespace(here(), 'clash');
  await offload(here(), 'clash', { namespaceMappingStrategy: 'EnforceSameName' });
  await reaches(here(), 'clash', 'AllFailed');
  expect(await conditionsOf('clash')).toMatchObject([
    { type: 'OffloadingRequired', status: 'True', reason: 'ClusterSelected' },
    { type: 'Ready', status: 'False', reason: 'CreationLoopBackOff' },
  ]);
  expect((await there().get(namespaces, { name: 'clash' }))?.metadata).toEqual(theirs?.metadata);
  await there().delete(namespaces, { name: 'clash' });
  await reaches(here(), 'clash', 'Ready');
  const ours = await there().get(namespaces, { name: 'clash' });
  expect(ours?.metadata.uid).not.toBe(theirs?.metadata.uid);
  expect(ours?.metadata.labels).toMatchObject({ 'liqo.io/remote-cluster-id': 'rome' });
});

test('B121 a selector that no longer selects the provider takes the namespace away there', async () => {
  await offloadedNamespace(pair, 'moving', milanOnly);
  expect(await there().get(namespaces, { name: 'moving-rome' })).toBeDefined();
  await change('moving', nobody);
  await reaches(here(), 'moving', 'NoClusterSelected');
  await soon('the remote namespace to go', async () => !(await there().get(namespaces, { name: 'moving-rome' })));
  await soon('only the verdict to be left', async () => (await conditionsOf('moving'))?.length === 1);
  expect(await conditionsOf('moving')).toMatchObject([
    { type: 'OffloadingRequired', status: 'False', reason: 'ClusterNotSelected' },
  ]);
  const { metadata, status } = (await offloadingOf(here(), 'moving')) ?? {};
  expect(status?.observedGeneration).toBe(metadata?.generation);
});

test('a pod that may run remotely only waits behind a gate, says why, and goes when its namespace is there', async () => {
  await makeNamespace(here(), 'early');
  await offload(here(), 'early', { podOffloadingStrategy: 'Remote', ...nobody });
  await reaches(here(), 'early', 'NoClusterSelected');
  const created = await soon('the webhook to hear of the namespace', async () => {
    const made = await here().create(pods, pod('early', 'web'));
    if (made.spec?.schedulingGates) return made;
    await here().delete(pods, { namespace: 'early', name: 'web' }, { gracePeriodSeconds: 0 });
    return undefined;
  });
  expect(created.spec?.schedulingGates).toEqual([{ name: 'isthmus.dev/offloading' }]);
  await soon('the reason', async () => (await events('early')).includes('no virtual node matches its clusterSelector'));
  await change('early', milanOnly);
  const released = await soon('the release', async () => {
    const found = await here().get(pods, { namespace: 'early', name: 'web' });
    return !found?.spec?.schedulingGates?.length && found;
  });
  expect((await offloadingOf(here(), 'early'))?.status?.offloadingPhase).toBe('Ready');
  expect(released.metadata.uid).toBe(created.metadata.uid);
  expect(released.metadata.labels ?? {}).toEqual({});
  const later = await here().create(pods, pod('early', 'later'));
  expect(later.spec?.schedulingGates ?? []).toEqual([]);
});

const budgetKind: ResourceType = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
};

test('with a drain asked for, a tightened policy evicts within the budgets before it takes the namespace away', async () => {
  await offloadedNamespace(pair, 'draining', milanOnly, { 'isthmus.dev/drain-on-policy-change': 'true' });
  const labels = { app: 'web' };
  await here().create(
    pods,
    pod('draining', 'web', { nodeName: 'milan', terminationGracePeriodSeconds: 0 }, { labels }),
  );
  await podAt(there(), 'draining-rome', 'web');
  await report(there(), 'draining-rome', 'web', 'Running');
  const isServing = async () => {
    const found = await here().get(pods, { namespace: 'draining', name: 'web' });
    return found?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  };
  await soon('serving', isServing);
  const budgets = '/apis/policy/v1/namespaces/draining/poddisruptionbudgets';
  await here().postPath(budgets, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'keep-web' },
    spec: { minAvailable: 1, selector: { matchLabels: labels } },
  });
  await soon('the budget to be counted', async () => {
    const { status } = JSON.parse(await here().getPath(`${budgets}/keep-web`));
    return status?.currentHealthy === 1;
  });
  await change('draining', nobody);
  await soon('what is in the way', async () =>
    /DrainBlocked[\s\S]*keep-web|keep-web[\s\S]*DrainBlocked/.test(await events('draining')),
  );
  expect(await isServing()).toBe(true);
  expect((await there().get(namespaces, { name: 'draining-rome' }))?.metadata.deletionTimestamp).toBeUndefined();
  const during = await offloadingOf(here(), 'draining');
  expect(during?.status?.observedGeneration).not.toBe(during?.metadata.generation);
  await here().delete(budgetKind, { namespace: 'draining', name: 'keep-web' });
  await soon('the pod to leave', async () => !(await here().get(pods, { namespace: 'draining', name: 'web' })));
  await soon('the remote namespace to go', async () => !(await there().get(namespaces, { name: 'draining-rome' })));
  await soon('the change to count as observed', async () => {
    const { metadata, status } = (await offloadingOf(here(), 'draining')) ?? {};
    return status?.observedGeneration === metadata?.generation && status?.offloadingPhase === 'NoClusterSelected';
  });
});

test('B120 two clusters that offload a namespace of the same name to each other keep the directions apart', async () => {
  const reverse: Pair = { ...pair, consumer: pair.provider, provider: pair.consumer };
  const ends = new AbortController();
  onTestFinished(() => ends.abort());
  await startSteadyNode(here(), 'rome-1', { 'kubernetes.io/os': 'linux' }, ends.signal);
  await peer(reverse, { cpu: '1' });
  await soon('the other virtual node', () => isReady(there(), 'rome'));
  await offloadedNamespace(pair, 'x');
  await offloadedNamespace(reverse, 'x');
  await here().create(pods, pod('x', 'from-rome', { nodeName: 'milan' }));
  await there().create(pods, pod('x', 'from-milan', { nodeName: 'rome' }));
  await shadowOf(there(), 'x-rome', 'from-rome');
  await shadowOf(here(), 'x-milan', 'from-milan');
  await report(there(), 'x-rome', 'from-rome', 'Running');
  await report(here(), 'x-milan', 'from-milan', 'Running');
  const phase = async (api: ReturnType<typeof here>, name: string) =>
    (await api.get(pods, { namespace: 'x', name }))?.status?.phase;
  await soon('both to run', async () =>
    (await Promise.all([phase(here(), 'from-rome'), phase(there(), 'from-milan')])).every((p) => p === 'Running'),
  );
  const all = async (api: ReturnType<typeof here>) =>
    (await api.list(shadowPods)).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  expect(await all(there())).toEqual(['x-rome/from-rome']);
  expect(await all(here())).toEqual(['x-milan/from-milan']);
});
