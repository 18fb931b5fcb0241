/** The agent without a broker: what liqoctl finds of it, and how it goes again. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import {
  clusterRoles,
  configMaps,
  csiDrivers,
  csiStorageCapacities,
  customResourceDefinitions,
  type Deployment,
  deployments,
  namespaces,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  roles,
  secrets,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { driverLabel, volumeFinalizer } from '#shared/domain/storage-keys.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { type Configuration, configurations } from '#shared/schema/liqo/configuration.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { capturedIo, isthmus, type Ran } from './captured-io.ts';
import { type KubeClient, openCluster } from './cluster/open.ts';
import { installedKinds } from './install/apply.ts';
import { callersLabel, callersOf, networkPolicies } from './install/caller-manifests.ts';

let server: TestApiServer;
let kube: KubeClient;
const liqo = { namespace: 'liqo' };
const agent = { ...liqo, name: 'isthmus-agent' };

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  server = await startApiServer({ controllerManager: true });
  kube = await openCluster({ kubeconfig: server.kubeconfigPath }, capturedIo({}));
}, 900_000);
afterAll(async () => await server?.stop());

const pulled = { waiting: { reason: 'ErrImagePull', message: 'no such image in any registry' } };
const crashed = { waiting: { reason: 'CrashLoopBackOff' } };
/** By image: what becomes of a container of ours. Of every other image, it runs. */
const fates: Readonly<Record<string, object>> = {
  'missing:1': { state: pulled },
  'crashing:1': { state: crashed, lastState: { terminated: { exitCode: 3, reason: 'Error' } }, restartCount: 4 },
};

/** No kubelet here: says of each pod of ours what becomes of it. */
async function playKubelet(): Promise<void> {
  const now = new Date().toISOString();
  for (const { metadata, spec, status } of await kube.list<Pod>(pods, 'app.kubernetes.io/part-of=isthmus')) {
    if (status?.phase === 'Running' || (status?.containerStatuses ?? []).length > 0) continue;
    const [container] = spec?.containers ?? [];
    const fate = fates[container?.image ?? ''];
    const ready = { type: 'Ready', status: fate === undefined ? 'True' : 'False', lastTransitionTime: now };
    const told = {
      name: container?.name,
      image: container?.image,
      imageID: '',
      ready: false,
      restartCount: 0,
      ...fate,
    };
    const containerStatuses = fate === undefined ? [] : [told];
    const phase = fate === undefined ? 'Running' : 'Pending';
    const played = { phase, conditions: [ready], containerStatuses };
    await kube.mergePatch(pods, { ...liqo, name: `${metadata.name}/status` }, { status: played });
  }
}

/** What of an installation is a wish: without what servers and controllers keep there, and without CustomResourceDefinitions. */
async function wishes(): Promise<Record<string, unknown>> {
  const found = await Promise.all(
    installedKinds
      .filter(({ kind }) => kind !== 'CustomResourceDefinition')
      .map((type) => kube.list<KubeObject>(type, 'app.kubernetes.io/part-of=isthmus')),
  );
  return Object.fromEntries(
    found.flat().map(({ metadata, ...content }) => {
      const { labels, annotations: all = {} } = metadata;
      const annotations = Object.entries(all).filter(([key]) => !/revision$|template\.generation$/.test(key));
      const key = `${content.kind} ${metadata.namespace ?? ''}/${metadata.name}`;
      return [key, { ...content, status: undefined, labels, annotations }];
    }),
  );
}

async function cli(line: string): Promise<Ran> {
  let over = false;
  const done = isthmus(`${line} --kubeconfig ${server.kubeconfigPath}`.split(' ')).finally(() => {
    over = true;
  });
  const played = async () => {
    await playKubelet().catch(() => undefined);
    return over;
  };
  await eventually('the command to end', played, { withinMs: 90_000, everyMs: 150 });
  return done;
}
const install = (more = '') =>
  cli(`install --cluster-id rome --api-server-url ${server.url} --pod-cidr 10.200.0.0/16 --timeout 60s${more}`);

describe('install', () => {
  test('needs no login and no broker', async () => {
    const { code, out, err } = await install();
    expect([code, out], err).toEqual([0, `cluster rome is ready to peer, API server for peers ${server.url}\n`]);
    expect(await kube.get(secrets, { ...liqo, name: 'isthmus-join' })).toBeUndefined();
  }, 120_000);

  test('leaves what liqoctl looks for, each exactly once', async () => {
    const maps = await kube.list(configMaps, 'app.kubernetes.io/name=clusterid-configmap');
    expect(maps.map(({ metadata, data }) => [metadata.namespace, data?.CLUSTER_ID])).toEqual([['liqo', 'rome']]);
    const managers = (await kube.list(
      deployments,
      'app.kubernetes.io/name=controller-manager,app.kubernetes.io/component=controller-manager',
    )) as Deployment[];
    expect(managers).toHaveLength(1);
    const container = managers[0]?.spec?.template.spec?.containers.find(({ name }) => name === 'controller-manager');
    expect(container?.args).toEqual(
      expect.arrayContaining([`--api-server-address-override=${server.url}`, '--tls-compatibility-mode=false']),
    );
    expect(container?.image).toMatch(/:[^:/]+$/);
    for (const type of ['pod-cidr', 'external-cidr', 'service-cidr', 'internal-cidr']) {
      const found = await kube.list(networkKinds.networks, `ipam.liqo.io/network-type=${type}`);
      expect(found, type).toHaveLength(1);
    }
    const templates = [
      await kube.get(networkKinds.wgGatewayServerTemplates, { ...liqo, name: 'wireguard-server' }),
      await kube.get(networkKinds.wgGatewayClientTemplates, { ...liqo, name: 'wireguard-client' }),
    ];
    expect(templates).not.toContain(undefined);
    expect(await kube.list(roles, 'app.kubernetes.io/component=peering-user')).toHaveLength(1);
    expect(await kube.list(clusterRoles, 'app.kubernetes.io/component=peering-user')).toHaveLength(1);
  });

  test('run again changes nothing', async () => {
    const before = (await kube.get(deployments, agent))?.metadata.generation;
    expect((await install()).code).toBe(0);
    expect((await kube.get(deployments, agent))?.metadata.generation).toBe(before);
  }, 120_000);

  test('with ranges from which the webhooks are called, closes them to others until the policies are deleted', async () => {
    const ranges = async () => callersOf(await kube.list(networkPolicies, callersLabel, liqo.namespace));
    expect((await install(' --webhook-callers 192.0.2.0/24')).code).toBe(0);
    expect(await ranges()).toEqual(['192.0.2.0/24']);
    expect((await install(' --webhook-callers 198.51.100.7/32')).code).toBe(0);
    expect((await install()).code).toBe(0);
    expect(await ranges()).toEqual(['192.0.2.0/24', '198.51.100.7/32']);
    const wrong = await install(' --webhook-callers rome');
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('--webhook-callers is "rome"')]);
    const shared = await install(' --webhook-callers 192.0.2.0/24 --node-process shared');
    expect(shared.code).toBe(2);
    for (const { metadata } of await kube.list(networkPolicies, callersLabel, liqo.namespace))
      await kube.delete(networkPolicies, { ...liqo, name: metadata.name });
    expect((await install()).code).toBe(0);
    expect(await ranges()).toEqual([]);
  }, 240_000);

  test('under another name is refused, with the name that it has', async () => {
    const { code, err } = await cli(`install --cluster-id paris --api-server-url ${server.url}`);
    expect([code, err]).toEqual([5, expect.stringContaining('rome')]);
  });
});

describe('an update whose agent does not become ready', () => {
  const image = async (): Promise<string | undefined> =>
    (await kube.get(deployments, agent))?.spec?.template.spec?.containers[0]?.image;

  test.each([
    ['an image that does not exist', 'missing:1', /cannot get the image missing:1: ErrImagePull: no such image/],
    ['an agent that crashes', 'crashing:1', /it ended with code 3 \(Error\), and was started again 4 times/],
  ])(
    'by %s is taken back: every object is as before, and the message says why',
    async (_what, bad, why) => {
      const before = await wishes();
      const running = (await kube.list<Pod>(pods, 'app.kubernetes.io/part-of=isthmus')).map(
        ({ metadata }) => metadata.name,
      );
      const more = ` --image ${bad} --metrics open --labels tier=gold --share-percent 50 --no-storage --timeout 15s`;
      const { code, out, err } = await install(more);
      expect([code, out], err).toEqual([8, '']);
      expect(err).toMatch(/rolled_back/);
      expect(err).toMatch(why);
      expect(await wishes()).toEqual(before);
      const after = (await kube.list<Pod>(pods, 'app.kubernetes.io/part-of=isthmus'))
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata.name);
      expect(after).toEqual(expect.arrayContaining(running));
      expect(await kube.list(customResourceDefinitions)).toHaveLength(allKinds.length);
    },
    120_000,
  );

  test('is left in place with --no-rollback, and one that follows it is not taken back to it', async () => {
    const good = await image();
    const left = await install(' --image missing:1 --no-rollback --timeout 4s');
    expect([left.code, left.err]).toEqual([8, expect.stringMatching(/deadline_exceeded/)]);
    expect(await image()).toBe('missing:1');
    const next = await install(` --image ${good}`);
    expect(next.code, next.err).toBe(0);
    expect(await image()).toBe(good);
  }, 120_000);
});

describe('install --no-storage after an installation with storage', () => {
  const claim = { namespace: 'default', name: 'data' };
  const volume = { name: 'pvc-of-milan' };
  const ofStorage = async () => ({
    classes: (await kube.list<KubeObject>(storageClasses)).map(({ metadata }) => metadata.name).sort(),
    drivers: (await kube.list<KubeObject>(csiDrivers)).map(({ metadata }) => metadata.name),
    rights: (await kube.list(roles, undefined, 'liqo-storage')).length,
    rooms: (await kube.list<KubeObject>(csiStorageCapacities, undefined, 'liqo-storage')).length,
  });
  const whole = { classes: ['isthmus', 'liqo'], drivers: ['storage.isthmus.dev'], rights: 1 };
  const nothing = { classes: [], drivers: [], rights: 0, rooms: 0 };

  test('takes the classes, the driver, what was said of free storage and the rights away, and an installation with storage puts them back', async () => {
    expect(await ofStorage()).toMatchObject(whole);
    await kube.create<KubeObject>(csiStorageCapacities, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIStorageCapacity',
      metadata: { namespace: 'liqo-storage', name: 'room', labels: { [driverLabel]: 'storage.isthmus.dev' } },
      storageClassName: 'isthmus',
      capacity: '1Gi',
    } as KubeObject);
    const off = await install(' --no-storage');
    expect(off.code, off.err).toBe(0);
    expect(off.err).not.toContain('stays');
    expect(await ofStorage()).toEqual(nothing);
    expect(await kube.get(namespaces, { name: 'liqo-storage' })).toBeDefined();
    const on = await install();
    expect(on.code, on.err).toBe(0);
    expect(await ofStorage()).toMatchObject(whole);
  }, 240_000);

  test('keeps a class that a claim names and says so, and holds no volume back from being deleted', async () => {
    await kube.create<KubeObject>(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: claim,
      spec: { storageClassName: 'liqo', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    } as KubeObject);
    await kube.create<KubeObject>(persistentVolumes, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        ...volume,
        finalizers: [volumeFinalizer],
        annotations: { 'pv.kubernetes.io/provisioned-by': 'liqo.io/storage' },
      },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        csi: { driver: 'storage.isthmus.dev', volumeHandle: 'milan/default-rome/data' },
      },
    } as KubeObject);
    const off = await install(' --no-storage');
    expect(off.code, off.err).toBe(0);
    expect(off.err).toContain('StorageClass liqo stays, because claims name it: default/data');
    expect(await ofStorage()).toEqual({ ...nothing, classes: ['liqo'] });
    await kube.delete(persistentVolumes, volume);
    const isGone = async () => (await kube.get(persistentVolumes, volume)) === undefined;
    await eventually('the volume to be gone', isGone, { withinMs: 60_000 });
    await kube.delete(persistentVolumeClaims, claim);
    const isFree = async () => (await kube.get(persistentVolumeClaims, claim)) === undefined;
    await eventually('the claim to be gone', isFree, { withinMs: 60_000 });
    const again = await install(' --no-storage');
    expect(again.code, again.err).toBe(0);
    expect(again.err).not.toContain('stays');
    expect(await ofStorage()).toEqual(nothing);
    expect((await install()).code).toBe(0);
    expect(await ofStorage()).toMatchObject(whole);
  }, 300_000);
});

describe('manifests and values', () => {
  const values = async (text: string): Promise<string> => {
    const file = path.join(server.dir, 'values.yaml');
    await writeFile(file, text);
    return file;
  };

  test('what would be applied is printed, is what an installation applies, and changes nothing', async () => {
    const { code, out, err } = await install(' -o yaml');
    expect(code, err).toBe(0);
    const printed = yaml.parseAllDocuments(out).map((document) => document.toJS() as Deployment);
    const found = printed.find(({ kind }) => kind === 'Deployment');
    expect(found?.metadata.name).toBe('isthmus-agent');
    const applied = await kube.get(deployments, agent);
    expect(applied?.spec?.template.spec).toMatchObject(found?.spec?.template.spec ?? {});
    const other = await cli(
      `install --cluster-id rome --api-server-url ${server.url} --image other:1 --pod-cidr 10.200.0.0/16 -o json`,
    );
    expect(JSON.parse(other.out)).toMatchObject({ kind: 'List' });
    expect(other.out).toContain('other:1');
    const joining = await cli(`join rome --api-server-url ${server.url} --pod-cidr 10.200.0.0/16 -o yaml`);
    expect([joining.code, joining.out], joining.err).toEqual([0, out]);
    expect((await kube.get(deployments, agent))?.metadata.generation).toBe(applied?.metadata.generation);
  }, 60_000);

  test('values of a file, single values over them, and options over both', async () => {
    const file = await values(
      `clusterId: rome\napiServerUrl: ${server.url}\nimage: from-file:1\nreplicas: 2\nnetwork:\n  podCidrs: [10.200.0.0/16]\n`,
    );
    const { out, err } = await cli(
      `install --values ${file} --set image=from-set:1 --set sharePercent=50 --replicas 1 -o json`,
    );
    const { items } = JSON.parse(out || `{"items":[],"err":${JSON.stringify(err)}}`) as { items: KubeObject[] };
    const found = items.find(({ kind }) => kind === 'Deployment') as Deployment;
    expect(found.spec?.replicas, err).toBe(1);
    expect(found.spec?.template.spec?.containers[0]?.image).toBe('from-set:1');
    expect(items.find(({ kind }) => kind === 'PeeringPolicy')).toMatchObject({
      spec: { asProvider: { sharePercent: 50 } },
    });
  }, 60_000);

  test('a value that does not exist is refused by its name, and so is a cluster without one', async () => {
    const file = await values('clusterId: rome\nnetwork:\n  podCidr: 10.0.0.0/8\n');
    const wrong = await cli(`install --values ${file}`);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('network.podCidr: there is no such value')]);
    const nameless = await cli('install --set image=x:1');
    expect([nameless.code, nameless.err]).toEqual([2, expect.stringContaining('--cluster-id NAME')]);
  });
});

describe('on a cluster of one node', () => {
  const mark = 'networking.isthmus.dev/node-process';
  const template = async () => (await kube.get(deployments, agent))?.spec?.template.spec;
  const marked = async () => (await kube.list(nodes, mark)).map(({ metadata }) => metadata.name);
  beforeAll(async () => {
    await kube.create(nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'only', labels: { 'kubernetes.io/os': 'linux' } },
    });
  });

  test('the work of the node goes to the controllers and back, and nothing of either way stays behind', async () => {
    const apart = await template();
    expect((await install(' --node-process shared')).err).not.toMatch(/error/i);
    const shared = await template();
    expect(shared).toMatchObject({ hostNetwork: true, hostPID: true });
    expect(shared?.containers[0]?.args?.[0]).toBe('all');
    expect(await marked()).toEqual(['only']);

    expect((await install(' --node-process own')).code).toBe(0);
    // A host port that the API server had filled in would stay on the node for ever.
    expect(await template()).toEqual(apart);
    expect((await install(' --node-process shared')).code).toBe(0);
    expect(await template()).toEqual(shared);
  }, 180_000);

  test('later installs keep it, and several replicas with it are refused', async () => {
    expect((await install()).code).toBe(0);
    expect(await template()).toMatchObject({ hostNetwork: true });
    const { code, err } = await install(' --node-process shared --replicas 2');
    expect([code, err]).toEqual([2, expect.stringContaining('--replicas is 2')]);
  }, 120_000);
});

describe('uninstall', () => {
  const namespace = 'liqo-tenant-milan';
  const peerLabels = { [label.remoteClusterId]: 'milan' };

  test('is refused while a peering exists, and says which', async () => {
    const metadata = { name: namespace, labels: { ...peerLabels, [label.tenantNamespace]: 'true' } };
    await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
    const cidr = { pod: ['10.201.0.0/16'], external: ['10.71.0.0/16'] };
    await kube.create(configurations, {
      apiVersion: 'networking.liqo.io/v1beta1',
      kind: 'Configuration',
      metadata: { name: 'milan', namespace, labels: peerLabels },
      spec: { remote: { cidr } },
    } as Configuration);
    await kube.create(foreignClusters, {
      apiVersion: 'core.liqo.io/v1beta1',
      kind: 'ForeignCluster',
      metadata: { name: 'milan', labels: peerLabels },
      spec: { clusterID: 'milan' },
    } as ForeignCluster);
    const [on, off] = [{ enabled: true }, { enabled: false }];
    const modules = { networking: on, authentication: off, offloading: off };
    await kube.mergePatch(foreignClusters, { name: 'milan/status' }, { status: { role: 'Unknown', modules } });
    const { code, err } = await cli('uninstall');
    expect(code).toBe(5);
    expect(err).toContain('peered with milan (networking)');
    expect(err).toContain(`Configuration ${namespace}/milan`);
    expect(await kube.get(deployments, agent)).toBeDefined();
  });

  test('with --purge leaves nothing', async () => {
    await kube.delete(configurations, { namespace, name: 'milan' });
    await kube.delete(foreignClusters, { name: 'milan' });
    const { code, err } = await cli('uninstall --purge');
    expect(code, err).toBe(0);
    expect(await kube.list(customResourceDefinitions)).toEqual([]);
    const left = [...(await kube.list(clusterRoles)), ...(await kube.list(namespaces))];
    expect(left.map(({ metadata }) => metadata.name).filter((name) => /liqo|isthmus/.test(name))).toEqual([]);
    expect(await kube.list(nodes, 'networking.isthmus.dev/node-process')).toEqual([]);
  }, 180_000);

  test('of nothing says so and is no failure', async () => {
    expect(await cli('uninstall')).toMatchObject({ code: 0, out: expect.stringContaining('nothing to remove') });
  });
});
