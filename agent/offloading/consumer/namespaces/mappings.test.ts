import { expect, test } from 'vitest';
import type { NamespaceMap } from '#shared/schema/liqo/namespace-map.ts';
import { accepted, followed, mappingOf } from './mappings.ts';

const mapped = (remoteNamespace: string, phase = 'Accepted') => ({ remoteNamespace, phase });
const map = (desiredMapping: Record<string, string>, currentMapping: object) =>
  ({
    metadata: { namespace: 'tenant', name: 'milan' },
    spec: { desiredMapping },
    status: { currentMapping },
  }) as NamespaceMap;

test('a namespace is offloaded once the provider has made what was asked for', () => {
  const made = map({ demo: 'demo-rome', later: 'later-rome' }, { demo: mapped('demo-rome') });
  expect(accepted(made)).toEqual(new Map([['demo', 'demo-rome']]));
  expect(mappingOf(made, 'demo')).toEqual({ kind: 'accepted', remoteNamespace: 'demo-rome' });
  expect(mappingOf(made, 'later')).toMatchObject({ kind: 'held' });
  expect(mappingOf(undefined, 'demo')).toBeUndefined();
});

test('a provider that names a namespace which this cluster does not offload gets nothing of it', () => {
  const lies = map({ demo: 'demo-rome' }, { demo: mapped('demo-rome'), 'kube-system': mapped('evil') });
  expect(accepted(lies)).toEqual(new Map([['demo', 'demo-rome']]));
  expect(mappingOf(lies, 'kube-system')).toEqual({ kind: 'none' });
  expect(accepted({ status: lies.status } as NamespaceMap)).toEqual(new Map());
});

test('a provider that names another namespace than was asked for is not followed there', () => {
  const lies = map({ demo: 'demo-rome' }, { demo: mapped('kube-system') });
  expect(accepted(lies)).toEqual(new Map());
  expect(mappingOf(lies, 'demo')).toMatchObject({ kind: 'held' });
});

test('a namespace on its way out is followed to its end, and one that claims the place of another is not', () => {
  const leaving = {
    demo: mapped('demo-rome'),
    old: mapped('old-rome', 'Terminating'),
    failed: mapped('x', 'CreationLoopBackOff'),
  };
  expect([...followed(map({ demo: 'demo-rome' }, leaving))]).toEqual([
    ['demo', 'demo-rome'],
    ['old', 'old-rome'],
  ]);
  const lies = { demo: mapped('demo-rome'), liqo: mapped('demo-rome'), shop: mapped('demo-rome') };
  expect([...followed(map({ demo: 'demo-rome', shop: 'shop-rome' }, lies))]).toEqual([['demo', 'demo-rome']]);
});

test('of namespaces that want one name one has it, and the others are told', () => {
  const both = { demo: mapped('one'), shop: mapped('one') };
  const shared = map({ shop: 'one', demo: 'one' }, both);
  expect(accepted(shared)).toEqual(new Map([['demo', 'one']]));
  expect(followed(shared)).toEqual(new Map([['demo', 'one']]));
  expect(mappingOf(shared, 'demo')).toMatchObject({ kind: 'accepted' });
  expect(mappingOf(shared, 'shop')).toMatchObject({
    kind: 'held',
    why: expect.stringMatching(/gives one to namespace demo, too/),
  });
  // The provider made it for the second: a mapping that is added by hand does not take it away.
  const second = map({ shop: 'one', demo: 'one' }, { shop: mapped('one'), demo: mapped('one', 'CreationLoopBackOff') });
  expect(accepted(second)).toEqual(new Map([['shop', 'one']]));
  expect(followed(second)).toEqual(new Map([['shop', 'one']]));
  // Nor do two that are on their way out follow one namespace.
  expect(followed(map({}, both))).toEqual(new Map([['demo', 'one']]));
});

test('a namespace may be called as something that every object inherits', () => {
  expect(mappingOf(map({}, {}), 'constructor')).toEqual({ kind: 'none' });
  expect(mappingOf(map({ constructor: 'constructor-rome' }, {}), 'constructor')).toMatchObject({ kind: 'held' });
  const made = map({ constructor: 'constructor-rome' }, { constructor: mapped('constructor-rome') });
  expect(accepted(made)).toEqual(new Map([['constructor', 'constructor-rome']]));
});
