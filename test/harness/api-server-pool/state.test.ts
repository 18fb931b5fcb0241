import { expect, test } from 'vitest';
import {
  type ApiObject,
  contentOf,
  differenceOf,
  type Held,
  isEqual,
  keyOf,
  ofTypes,
  type ServedType,
  type State,
  stepsOf,
  typesOf,
  wordsOf,
} from './state.ts';

const verbs = ['list', 'delete', 'deletecollection'];
const configMaps: ServedType = { group: '', version: 'v1', plural: 'configmaps', namespaced: true, verbs };
const namespaces: ServedType = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  namespaced: false,
  verbs: ['list', 'delete'],
};
const leases: ServedType = { ...configMaps, group: 'coordination.k8s.io', plural: 'leases' };
const accounts: ServedType = { ...configMaps, plural: 'serviceaccounts' };
const webhooks: ServedType = {
  ...namespaces,
  group: 'admissionregistration.k8s.io',
  plural: 'validatingwebhookconfigurations',
  verbs,
};

const held = (type: ServedType, metadata: ApiObject['metadata'], rest: object = {}): Held => ({
  type,
  object: { ...rest, metadata },
});
const stateOf = (...all: Held[]): State => new Map(all.map((one) => [keyOf(one.type, one.object), one]));
const rootCa = held(configMaps, { name: 'kube-root-ca.crt', namespace: 'default' }, { data: { ca: '1' } });

test('status and what the API server numbers make no difference; labels and data do', () => {
  const again = held(
    configMaps,
    { ...rootCa.object.metadata, uid: 'other', resourceVersion: '9' },
    { data: { ca: '1' }, status: {} },
  );
  expect(contentOf(again)).toBe(contentOf(rootCa));
  const labelled = held(configMaps, { ...rootCa.object.metadata, labels: { a: 'b' } }, { data: { ca: '1' } });
  expect(isEqual(differenceOf(stateOf(rootCa), stateOf(labelled)))).toBe(false);
});

test('the order of members makes no difference', () => {
  const one = held(configMaps, { name: 'a', namespace: 'b' }, { data: { x: '1', y: '2' } });
  const other = held(configMaps, { namespace: 'b', name: 'a' }, { data: { y: '2', x: '1' } });
  expect(contentOf(one)).toBe(contentOf(other));
});

test('a renewed lease and a new account of kube-controller-manager are no difference, a lease that a test left is one', () => {
  const renewed = (at: string) =>
    held(leases, { name: 'node', namespace: 'kube-node-lease' }, { spec: { renewTime: at } });
  const account = held(accounts, { name: 'job-controller', namespace: 'kube-system' });
  expect(isEqual(differenceOf(stateOf(renewed('1')), stateOf(renewed('2'), account)))).toBe(true);
  const left = held(leases, { name: 'agent', namespace: 'liqo' });
  expect(differenceOf(stateOf(renewed('1')), stateOf(renewed('1'), left)).added).toEqual([left]);
});

test('webhooks are deleted before anything else, since they may refuse other deletions', () => {
  const webhook = held(webhooks, { name: 'isthmus-webhook' });
  const left = held(configMaps, { name: 'left', namespace: 'default' });
  const before = stateOf(rootCa);
  expect(stepsOf(before, differenceOf(before, stateOf(rootCa, left, webhook)))).toEqual([
    { do: 'delete', held: webhook },
  ]);
});

test('the APIService of an added kind is left to the API server, which removes it with the kind', () => {
  const type: ServedType = { ...webhooks, group: 'apiregistration.k8s.io', plural: 'apiservices' };
  const automatic = held(type, { name: 'v1.left', labels: { 'kube-aggregator.kubernetes.io/automanaged': 'true' } });
  const kind = held(
    { ...webhooks, group: 'apiextensions.k8s.io', plural: 'customresourcedefinitions' },
    { name: 'left' },
  );
  const before = stateOf(rootCa);
  const difference = differenceOf(before, stateOf(rootCa, automatic, kind));
  expect(isEqual(difference)).toBe(false);
  expect(stepsOf(before, difference)).toEqual([{ do: 'delete-collection', type: kind.type, namespace: undefined }]);
});

test('the rules of an aggregated role are not what a test left', () => {
  const type: ServedType = { ...webhooks, group: 'rbac.authorization.k8s.io', plural: 'clusterroles' };
  const role = (rules: unknown) => held(type, { name: 'view' }, { aggregationRule: {}, rules });
  expect(contentOf(role(null))).toBe(contentOf(role([{ verbs: ['get'] }])));
});

test('a collection is deleted as a whole only where nothing was before', () => {
  const [near, far, also] = ['default', 'demo', 'demo'].map((namespace, i) =>
    held(configMaps, { name: `left-${i}`, namespace }),
  ) as [Held, Held, Held];
  const before = stateOf(rootCa);
  expect(stepsOf(before, differenceOf(before, stateOf(rootCa, near, far, also)))).toEqual([
    { do: 'delete-collection', type: configMaps, namespace: 'demo' },
    { do: 'delete', held: near },
  ]);
});

test('finalizers are stripped once the deletion waits for them; a namespace is finalized once it is empty', () => {
  const ending = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const namespace = held(namespaces, { name: 'demo', ...ending });
  const stuck = held(configMaps, { name: 'stuck', namespace: 'demo', finalizers: ['isthmus.dev/x'], ...ending });
  const before = stateOf(rootCa);
  expect(stepsOf(before, differenceOf(before, stateOf(rootCa, namespace, stuck)))).toEqual([
    { do: 'strip-finalizers', held: stuck },
  ]);
  expect(stepsOf(before, differenceOf(before, stateOf(rootCa, namespace)))).toEqual([
    { do: 'finalize-namespace', held: namespace },
  ]);
});

test('what was there and is changed gets its content back; what is missing is named', () => {
  const changed = held(configMaps, rootCa.object.metadata, { data: { ca: '2' } });
  const before = stateOf(rootCa);
  expect(stepsOf(before, differenceOf(before, stateOf(changed)))).toEqual([{ do: 'restore', held: rootCa }]);
  const gone = differenceOf(before, stateOf());
  expect(stepsOf(before, gone)).toEqual([]);
  expect(wordsOf(gone)).toBe('configmaps. default/kube-root-ca.crt is missing');
});

test('the types of a difference are named once each, and a state is narrowed to them', () => {
  const [one, two] = [held(configMaps, { name: 'one' }), held(configMaps, { name: 'two' })];
  const lease = held(leases, { name: 'left' });
  const difference = { added: [one, lease], changed: [two], missing: [] };
  expect(typesOf(difference)).toEqual([configMaps, leases]);
  const all = stateOf(one, two, lease, rootCa);
  expect([...ofTypes(all, [leases]).values()]).toEqual([lease]);
  expect(ofTypes(all, undefined)).toBe(all);
});
