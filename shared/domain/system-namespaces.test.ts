/** Which namespaces may be offloaded and under which names. */
import { describe, expect, test } from 'vitest';
import { isSystemNamespace, namespaceNameProblem, remoteNamespaceProblem } from './system-namespaces.ts';

describe('system namespaces', () => {
  test.each(['kube-system', 'kube-public', 'kube-node-lease', 'liqo', 'liqo-tenant-rome'])(
    '%s is a system namespace',
    (name) => expect(isSystemNamespace(name)).toBe(true),
  );

  test.each(['default', 'demo', 'liqo-storage', 'liqo-demo', 'kubernetes', 'my-kube-system'])(
    '%s belongs to the user',
    (name) => expect(isSystemNamespace(name)).toBe(false),
  );

  test('a namespace with the tenant labels is a tenant namespace under any name', () => {
    expect(isSystemNamespace('customers', { 'liqo.io/tenant-namespace': 'true' })).toBe(true);
  });

  test.each([
    ['a'.repeat(63), undefined],
    ['a'.repeat(64), /64 characters.*at most 63/],
    ['Demo', /DNS-1123/],
    ['-demo', /DNS-1123/],
    ['demo.rome', /DNS-1123/],
    ['', /DNS-1123/],
  ])('the name %j is judged', (name, expected) => {
    const problem = namespaceNameProblem(name);
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toMatch(expected);
  });

  test.each(['kube-system', 'liqo', 'liqo-storage', 'default', 'liqo-tenant-milan'])(
    '%s cannot be asked for at a provider',
    (name) => expect(remoteNamespaceProblem(name)).toMatch(/reserved at every provider/),
  );
  test.each(['demo-rome', 'liqo-storage-rome'])('%s can', (name) =>
    expect(remoteNamespaceProblem(name)).toBeUndefined(),
  );
});
