/** Whose objects Helm takes over: the real helm before what `isthmus uninstall` leaves. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { namespaces, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { eventually } from '#test/harness/eventually.ts';
import { run } from '#test/harness/program.ts';
import { buildHelm } from '#test/testbed/build.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { capturedIo, isthmus } from './captured-io.ts';
import { type KubeClient, openCluster } from './cluster/open.ts';
import { storageManifests } from './install/storage-manifests.ts';

const chart = path.join(repositoryRoot, 'charts', 'isthmus');
let helm: string;
let server: Awaited<ReturnType<typeof leaseApiServer>>;
let kube: KubeClient;
let values: string;
beforeAll(async () => {
  helm = await buildHelm();
  server = await leaseApiServer();
  kube = await openCluster({ kubeconfig: server.kubeconfigPath }, capturedIo({}));
  values = path.join(server.dir, 'values.json');
  const network = { enabled: false };
  await writeFile(values, JSON.stringify({ clusterId: 'rome', apiServerUrl: server.url, network }));
}, 900_000);
afterAll(async () => await server?.stop());

/** Helm asks whose the objects are that it finds, and writes nothing. */
async function refusalOf(release: string, namespace: string): Promise<string> {
  const flags = ['--values', values, '--dry-run=server', '--no-hooks', '--skip-crds', '--namespace', namespace];
  const { code, stderr } = await run(helm, [
    'install',
    release,
    chart,
    ...flags,
    '--kubeconfig',
    server.kubeconfigPath,
  ]);
  return code === 0 ? '' : stderr;
}
async function uninstall(): Promise<string> {
  const liqo = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'liqo' } };
  await eventually('namespace liqo to be there', () => kube.apply(namespaces, liqo as KubeObject, 'isthmus-cli'));
  const { code, out, err } = await isthmus(['uninstall', '--kubeconfig', server.kubeconfigPath]);
  expect(code, err).toBe(0);
  return out;
}

test('a release may be installed over the namespace that `isthmus uninstall` left for its claims: that of the docs at once, another one once it is named', async () => {
  const ofClasses = { className: 'liqo', capacityClassName: 'isthmus', isDefault: false };
  const namespace = storageManifests(ofClasses).find(({ kind }) => kind === 'Namespace') as KubeObject;
  await kube.apply(namespaces, namespace, 'isthmus-cli');
  await kube.create<KubeObject>(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: 'liqo-storage', name: 'of-a-volume' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  } as KubeObject);
  expect(await refusalOf('isthmus', 'kube-system')).toContain('invalid ownership metadata');
  expect(await uninstall()).toContain('liqo-storage');
  expect(await refusalOf('isthmus', 'kube-system')).toBe('');
  expect(await refusalOf('lender', 'default')).toContain('must equal "lender": current value is "isthmus"');
  const annotations = { 'meta.helm.sh/release-name': 'lender', 'meta.helm.sh/release-namespace': 'default' };
  await kube.mergePatch(namespaces, { name: 'liqo-storage' }, { metadata: { annotations } });
  expect(await refusalOf('lender', 'default')).toBe('');
  // What is a release's stays that release's.
  await uninstall();
  expect(await refusalOf('lender', 'default')).toBe('');
}, 240_000);
