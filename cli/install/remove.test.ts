/** What goes when Isthmus is taken out of a cluster, what stays, and what is said of it. */
import { describe, expect, test } from 'vitest';
import {
  certificateSigningRequests,
  clusterRoleBindings,
  namespaces,
  nodes,
  pods,
  roleBindings,
  secrets,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { isKept, nameOf, ownObjects } from './own-objects.ts';
import { securityContextConstraints } from './platform-manifests.ts';
import { clusterOf, io, peered, remove, tenantNamespace } from './testing/cluster-in-memory.ts';

describe('taking Isthmus out', () => {
  test('keeps what people and peers own, and says why', async () => {
    const { kube, find } = peered();
    const kept = await remove(kube, false);
    expect(kept.map((one) => `${nameOf(one)}: ${one.note}`).sort()).toEqual([
      'ForeignCluster milan: removed with --purge',
      'Namespace demo: its label liqo.io/scheduling-enabled goes with --purge',
      'Namespace guest-milan: pods of milan ran in it; delete it when they are not needed',
      'Namespace liqo-tenant-milan: removed with --purge',
      'NamespaceOffloading demo/offloading: removed with --purge',
      'Tenant liqo-tenant-milan/milan: removed with --purge',
    ]);
    expect(find(clusterRoleBindings, { name: 'cluster-admin' })).toBeDefined();
    expect(find(namespaces, { name: 'by-hand' })?.metadata.labels).toEqual({ 'liqo.io/scheduling-enabled': 'true' });
  });

  test('deletes only what it saw: an object that was replaced under its name stays', async () => {
    const labels = { 'app.kubernetes.io/part-of': 'isthmus' };
    const { kube } = clusterOf([
      [storageClasses, { name: 'liqo', uid: 'u-1', labels }, { provisioner: 'liqo.io/storage' }],
    ]);
    const asked: unknown[] = [];
    await remove(
      {
        ...kube,
        async delete(type, ref, uid) {
          asked.push([type.kind, ref.name, uid]);
          return kube.delete(type, ref, uid);
        },
      },
      true,
    );
    expect(asked).toContainEqual(['StorageClass', 'liqo', 'u-1']);
  });

  test('leaves no finalizer of ours that would hold what is kept for ever', async () => {
    const { kube, find } = peered();
    await remove(kube, false);
    expect(find(namespaceOffloadings, { namespace: 'demo', name: 'offloading' })?.metadata.finalizers).toBeUndefined();
    expect(find(tenants, { namespace: tenantNamespace, name: 'milan' })?.metadata.finalizers).toBeUndefined();
    const secret = find(secrets, { namespace: tenantNamespace, name: 'kubeconfig' });
    expect(secret?.metadata.finalizers).toEqual(['a.example/b']);
  });

  test('takes its marks off what others made, and nothing else', async () => {
    const { kube, find } = peered();
    await remove(kube, false);
    expect(find(nodes, { name: 'node-1' })?.metadata.labels).toEqual({ 'kubernetes.io/os': 'linux' });
    expect(find(nodes, { name: 'milan' })).toBeUndefined();
    const pod = find(pods, { namespace: 'demo', name: 'waits' });
    expect([pod?.metadata.labels, pod?.spec]).toEqual([
      { app: 'web' },
      { schedulingGates: [{ name: 'example.com/quota' }] },
    ]);
  });

  test('takes the rights of peers away, in every namespace', async () => {
    const { kube, find } = peered();
    await remove(kube, false);
    expect(find(clusterRoleBindings, { name: 'liqo-binding-milan' })).toBeUndefined();
    expect(find(roleBindings, { namespace: 'guest-milan', name: 'liqo-binding' })).toBeUndefined();
    expect(find(certificateSigningRequests, { name: 'liqo-milan' })).toBeUndefined();
  });

  test('takes the constraints of gateways on OpenShift away, and no others', async () => {
    const labels = { 'app.kubernetes.io/part-of': 'isthmus' };
    const { kube, find } = clusterOf([
      [namespaces, { name: 'liqo' }],
      [securityContextConstraints, { name: 'isthmus-gateway', labels }],
      [securityContextConstraints, { name: 'restricted-v2' }],
    ]);
    expect(await remove(kube, false)).toEqual([]);
    expect(find(securityContextConstraints, { name: 'isthmus-gateway' })).toBeUndefined();
    expect(find(securityContextConstraints, { name: 'restricted-v2' })).toBeDefined();
  });

  test('with purge names what a foreign finalizer holds, and goes on once it is off', async () => {
    const { kube, find } = peered();
    await expect(remove(kube, true)).rejects.toMatchObject({
      code: 'deadline_exceeded',
      message: expect.stringContaining('Namespace liqo-tenant-milan'),
    });
    const held = { namespace: tenantNamespace, name: 'kubeconfig' };
    await kube.mergePatch(secrets, held, { metadata: { finalizers: null } });
    const kept = await remove(kube, true);
    expect(kept.map(nameOf)).toEqual(['Namespace guest-milan']);
    expect(find(namespaces, { name: 'demo' })?.metadata.labels).toEqual({ team: 'shop' });
    expect((await ownObjects(io(), kube, true)).every(isKept)).toBe(true);
  });

  test.each([
    { what: 'node processes', label: 'isthmus-fabric', name: 'isthmus-fabric' },
    { what: 'agent', label: 'controller-manager', name: 'isthmus-agent' },
  ])(
    'says on which node the $what do not end, and has removed nothing that they need',
    async ({ what, label, name }) => {
      const component = label === 'isthmus-fabric' ? 'fabric' : label;
      const labels = { 'app.kubernetes.io/name': label, 'app.kubernetes.io/component': component };
      const { kube, find } = clusterOf([
        [namespaces, { name: 'liqo' }],
        [clusterRoleBindings, { name, labels: { 'app.kubernetes.io/part-of': 'isthmus' } }],
        [pods, { namespace: 'liqo', name: 'lost', labels }, { spec: { nodeName: 'node-7' } }],
      ]);
      await expect(remove(kube, false)).rejects.toMatchObject({
        code: 'deadline_exceeded',
        message: `the pods of the ${what} do not end: lost on node-7`,
        detail: { remedy: expect.stringContaining('kubectl delete node') },
      });
      expect(find(clusterRoleBindings, { name })).toBeDefined();
    },
  );
});
