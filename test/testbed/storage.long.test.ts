import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '#scripts/setup/run-command.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { devicesOf, volumesFolder } from './loop-devices.ts';
import { runningComponents } from './processes.ts';
import { repositoryRoot } from './repository-root.ts';
import { slotOf } from './slots.ts';
import { type Bed, type BedCluster, down, status, up } from './testbed.ts';

const dir = path.join(repositoryRoot, '.build', 'testbed-with-storage');
const log = (line: string): void => console.error(line);
const request = { name: 'vault', storage: true };
let bed: Bed;
let cluster: BedCluster;
let slot: number;

beforeAll(async () => {
  await down({ dir, log });
  await rm(dir, { recursive: true, force: true });
  bed = await up({ dir, log, clusters: [request] });
  cluster = bed.cluster('vault');
  slot = slotOf(dir) ?? -1;
}, 600_000);
afterAll(async () => await down({ dir, log }), 120_000);

const patient = { timeout: 60_000 } as const;
const mebi = 2 ** 20;
const volumes = (): string[] =>
  readdirSync(path.join(cluster.dir, 'nodes', 'vault-1', volumesFolder(slot, 'vault-1'))).sort();

const claim = (name: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '32Mi' } }, ...spec },
});
const pod = (name: string, claimName: string, args: string[], container: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: 'main',
        image: 'isthmus.test/workload:1',
        args,
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
        ...container,
      },
    ],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
  },
});
const asDevice = { volumeMounts: [], volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] };

async function apply(...items: object[]): Promise<void> {
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await runCommand(path.join(dir, 'kubectl'), [`--kubeconfig=${cluster.kubeconfigPath}`, 'apply', '-f', '-'], {
    input,
  });
}
const field = (kind: string, name: string, jsonpath: string): Promise<string> =>
  cluster.kubectl('get', kind, name, '-o', `jsonpath={${jsonpath}}`);
const ready = (name: string): Promise<string> =>
  cluster.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=90s');

describe('a cluster of the test bed with storage', () => {
  inOrder('describe');

  test('keeps what a pod wrote for the next one, in a volume that waited for the first', async () => {
    await apply(claim('data'));
    expect(await field('pvc', 'data', '.status.phase')).toBe('Pending');
    await apply(pod('writer', 'data', ['write', '-hold', '/data/notes', 'kept']));
    await ready('writer');
    await cluster.kubectl('delete', 'pod', 'writer', '--wait');
    await apply(pod('reader', 'data', ['cat', '/data/notes']));
    await expect.poll(() => field('pod', 'reader', '.status.phase'), patient).toBe('Succeeded');
    expect(await cluster.kubectl('logs', 'reader')).toBe('kept\n');
    await cluster.kubectl('delete', 'pod', 'reader', '--wait');
  }, 240_000);

  test('makes volumes of the Immediate class without a pod', async () => {
    await apply(claim('now', { storageClassName: 'loop-now' }));
    await expect.poll(() => field('pvc', 'now', '.status.phase'), patient).toBe('Bound');
  }, 90_000);

  test('grows a volume, and the file system on it, under a running pod', async () => {
    await apply(pod('holder', 'data', ['write', '-hold', '/data/notes', 'more']));
    await ready('holder');
    const patch = JSON.stringify({ spec: { resources: { requests: { storage: '96Mi' } } } });
    await cluster.kubectl('patch', 'pvc', 'data', '-p', patch);
    await expect.poll(() => field('pvc', 'data', '.status.capacity.storage'), { timeout: 150_000 }).toBe('96Mi');
    const [node] = bed.cluster('vault').nodes;
    const target = `/var/lib/kubelet/pods/${await field('pod', 'holder', '.metadata.uid')}/volumes/kubernetes.io~csi/${await field('pvc', 'data', '.spec.volumeName')}/mount`;
    const size = Number(await node?.exec('findmnt', ['--noheadings', '--bytes', '--output', 'SIZE', target]));
    expect(size).toBeGreaterThan(64 * mebi);
  }, 240_000);

  test('gives a pod a block device', async () => {
    await apply(
      claim('raw', { volumeMode: 'Block' }),
      pod('raw', 'raw', ['write', '-hold', '/dev/data', 'blocks'], asDevice),
    );
    await ready('raw');
    const image = await field('pvc', 'raw', '.spec.volumeName');
    const file = path.join(cluster.dir, 'nodes', 'vault-1', volumesFolder(slot, 'vault-1'), `${image}.img`);
    await expect.poll(() => runCommand('head', ['-c', '7', file]), patient).toBe('blocks\n');
  }, 120_000);

  test('says which access mode it cannot serve, and that a node has no room', async () => {
    await apply(
      claim('shared', { accessModes: ['ReadWriteMany'], storageClassName: 'loop-now' }),
      claim('huge', { resources: { requests: { storage: '1Ti' } }, storageClassName: 'loop-now' }),
    );
    const events = (name: string): Promise<string> =>
      cluster.kubectl('get', 'events', `--field-selector=involvedObject.name=${name}`, '-o', 'jsonpath={..message}');
    await expect.poll(() => events('shared'), patient).toContain('access mode ReadWriteMany');
    await expect.poll(() => events('huge'), patient).toContain('has not that much left');
    await cluster.kubectl('delete', 'pvc', 'shared', 'huge', '--wait');
  }, 120_000);

  test('deletes the file with the claim', async () => {
    const gone = await field('pvc', 'now', '.spec.volumeName');
    expect(volumes()).toContain(`${gone}.img`);
    await cluster.kubectl('delete', 'pvc', 'now', '--wait');
    await expect.poll(volumes, patient).not.toContain(`${gone}.img`);
  }, 90_000);

  test('gets its driver back after a crash, with the volumes that were mounted', async () => {
    process.kill(runningComponents(slot).get('vault-1/loopbox') ?? Number.NaN, 'SIGKILL');
    await expect.poll(async () => (await status({ dir })).clusters[0]?.health.state, patient).toBe('lame');
    await up({ dir, log, clusters: [request] });
    expect(await cluster.kubectl('exec', 'holder', '--', 'cat', '/data/notes')).toBe('kept\nmore\n');
    await cluster.kubectl('delete', 'pod', 'holder', '--wait');
    await apply(pod('later', 'data', ['cat', '/data/notes']));
    await expect.poll(() => field('pod', 'later', '.status.phase'), patient).toBe('Succeeded');
  }, 240_000);

  test('leaves no loop device behind when a node is killed while a device and a file system are in use', async () => {
    await apply(pod('last', 'data', ['write', '-hold', '/data/notes', 'last']));
    await ready('last');
    // One of the file system, one of the device, one that the kubelet laid over the device.
    expect((await devicesOf(slot)).length).toBeGreaterThanOrEqual(3);
    process.kill(runningComponents(slot).get('vault-1/init') ?? Number.NaN, 'SIGKILL');
    await expect.poll(async () => (await status({ dir })).clusters[0]?.health.state, patient).toBe('broken');
    await down({ dir, log });
    expect(await devicesOf(slot)).toEqual([]);
    expect((await runCommand('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE'])).includes(dir)).toBe(
      false,
    );
  }, 240_000);
});
