/** The life of a Helm release of the chart, with the real helm, on a real API server and controller manager. There is no kubelet: the test plays it. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import {
  clusterRoles,
  configMaps,
  customResourceDefinitions,
  deployments,
  mutatingWebhookConfigurations,
  namespaces,
  persistentVolumeClaims,
  pods,
  services,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { admission } from '#shared/domain/liqo-keys.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { type Ended, must, run } from '#test/harness/program.ts';
import { buildHelm } from '#test/testbed/build.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { capturedIo, isthmus } from './captured-io.ts';
import { type KubeClient, openCluster } from './cluster/open.ts';

const chart = path.join(repositoryRoot, 'charts', 'isthmus');
const { networks } = networkKinds;
const agent = { namespace: 'liqo', name: 'isthmus-agent' };
const release = 'lender';
let server: TestApiServer;
let kube: KubeClient;
let helmProgram: string;
let scratch: string;
let before: readonly string[];

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  helmProgram = await buildHelm();
  server = await startApiServer({ controllerManager: true });
  kube = await openCluster({ kubeconfig: server.kubeconfigPath }, capturedIo({}));
  scratch = await mkdtemp(path.join(os.tmpdir(), 'isthmus-chart-'));
  // The accounts of namespaces and of the controllers come one after the other.
  let last: readonly string[] = [];
  before = await eventually(
    'the cluster to be at rest',
    async () => {
      const now = await everything();
      const isSame = now.join() === last.join();
      last = now;
      return isSame ? now : undefined;
    },
    { withinMs: 120_000, everyMs: 3_000 },
  );
}, 900_000);
afterAll(async () => {
  await server?.stop();
  if (scratch) await rm(scratch, { recursive: true, force: true });
});

const kubectl = async (...args: readonly string[]): Promise<string> =>
  (await must(server.kubebox, ['kubectl', '--kubeconfig', server.kubeconfigPath, ...args])).stdout;

/** Names of all objects, of every kind that can be listed, but of those that come and go by themselves. */
async function everything(): Promise<readonly string[]> {
  const kinds = (await kubectl('api-resources', '--verbs=list,delete', '-o', 'name', '--cached=false'))
    .trim()
    .split('\n');
  const lasting = kinds.filter(
    (kind) => !/^(apiservices|events|leases|endpointslices|endpoints|controllerrevisions)(\.|$)/.test(kind),
  );
  const columns = 'custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name';
  const names = await kubectl('get', lasting.join(), '--all-namespaces', '--no-headers', '-o', columns);
  return names
    .trim()
    .split('\n')
    .map((line) => line.replaceAll(/\s+/g, ' '))
    .sort();
}

const helm = (...args: readonly string[]): Promise<Ended> =>
  run(helmProgram, [...args, '--namespace', 'default', '--kubeconfig', server.kubeconfigPath]);

async function values(more: object): Promise<string> {
  const file = path.join(scratch, 'values.json');
  const network = { podCidrs: ['10.200.0.0/16'], serviceCidr: '10.96.0.0/12', externalCidr: '10.70.0.0/16' };
  await writeFile(file, JSON.stringify({ clusterId: 'rome', apiServerUrl: server.url, network, ...more }));
  return file;
}

/** Of the program in the image; `test/system/chart` runs that itself. */
const sourceOfCheck = ['scripts/run.mjs', 'cli/preflight-hook.ts'];

interface HookPod extends KubeObject {
  readonly spec: {
    readonly serviceAccountName: string;
    readonly containers: readonly {
      readonly command: readonly string[];
      readonly env: readonly { name: string; value: string }[];
    }[];
    readonly volumes?: readonly { readonly configMap?: { readonly name: string } }[];
  };
}

/** Runs the command of a hook's pod as a kubelet would, with its files and its account's token; what it printed. */
async function playHook(): Promise<string> {
  const found = await kube.list<Pod>(pods, 'batch.kubernetes.io/job-name', 'default');
  const pending = found.find(({ status }) => status?.phase === 'Pending') as HookPod | undefined;
  if (pending === undefined) return '';
  const { serviceAccountName, containers, volumes = [] } = pending.spec;
  const [container] = containers;
  const [, script = '', ...args] = container?.command ?? [];
  const name = volumes.find(({ configMap }) => configMap !== undefined)?.configMap?.name ?? '';
  const { data = {} } = (name && (await kube.get(configMaps, { namespace: 'default', name }))) || {};
  for (const [file, content] of Object.entries(data)) await writeFile(path.join(scratch, file), content);
  const folder = '/var/run/secrets/kubernetes.io/serviceaccount';
  await writeFile(path.join(scratch, 'token'), await kubectl('create', 'token', serviceAccountName, '-n', 'default'));
  await writeFile(path.join(scratch, 'ca.crt'), server.ca);
  const env = Object.fromEntries(
    (container?.env ?? []).map(({ name, value }) => [name, value.replace(folder, scratch)]),
  );
  const { hostname, port } = new URL(server.url);
  const program = script === '/app/check.mjs' ? sourceOfCheck : [script.replace('/hook', scratch)];
  const ended = await run(process.execPath, [...program, ...args], {
    cwd: repositoryRoot,
    env: { ...env, KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, WITHIN_SECONDS: '1' },
  });
  // No agent runs here: what waits for one is played as if it had come, after its complaint.
  const isPlayed = serviceAccountName.endsWith('-works');
  const phase = ended.code === 0 || isPlayed ? 'Succeeded' : 'Failed';
  await kube.mergePatch(pods, { namespace: 'default', name: `${pending.metadata.name}/status` }, { status: { phase } });
  return `${ended.stdout}${ended.stderr}`;
}

/** With what its hooks printed. */
async function played(...args: readonly string[]): Promise<Ended & { readonly said: string }> {
  let said = '';
  let over = false;
  const done = helm(...args).finally(() => {
    over = true;
  });
  await eventually(
    'helm to end',
    async () => {
      said += await playHook();
      return over;
    },
    { withinMs: 110_000, everyMs: 200 },
  );
  return { ...(await done), said };
}
const uninstall = () => played('uninstall', release, '--timeout', '90s');

const released = async (): Promise<KubeObject[]> =>
  yaml
    .parseAllDocuments((await helm('get', 'manifest', release)).stdout)
    .flatMap((document) => (document.toJSON() as KubeObject | null) ?? []);
const missing = async (objects: readonly KubeObject[]): Promise<string[]> => {
  const there = new Set(await everything());
  return objects
    .map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? '<none>'} ${metadata.name}`)
    .filter((name) => !there.has(name));
};
const image = async (): Promise<string | undefined> =>
  (await kube.get(deployments, agent))?.spec?.template.spec?.containers[0]?.image;
const share = async (): Promise<number | undefined> =>
  (await kube.get(peeringPolicies, { name: 'default' }))?.spec.asProvider?.sharePercent;
const metricsService = () => kube.get(services, { namespace: 'liqo', name: 'isthmus-agent-metrics' });
const metricsReader = () => kube.get(clusterRoles, { name: 'isthmus-metrics-reader' });

const definitions = async (): Promise<string[]> =>
  (await kube.list<KubeObject>(customResourceDefinitions)).map(
    ({ metadata }) => `CustomResourceDefinition <none> ${metadata.name}`,
  );

/** The namespace of real claims, which Helm never deletes, and what Kubernetes puts into it. */
const ofStorage = async (): Promise<string[]> =>
  (await kube.get(namespaces, { name: 'liqo-storage' })) === undefined
    ? []
    : ['Namespace <none> liqo-storage', ...(await everything()).filter((one) => one.includes(' liqo-storage '))];
const ofVolume = { namespace: 'liqo-storage', name: 'of-a-volume' };

const definitionsApplied = `${allKinds.length} CustomResourceDefinitions are those of this chart\n`;
const changed = { name: 'peeringpolicies.isthmus.dev' };
const versions = async () => (await kube.get(customResourceDefinitions, changed))?.spec.versions;
/** Makes a definition what a former release may have left; resolves with what it was. */
async function ageDefinition(): ReturnType<typeof versions> {
  const wanted = await versions();
  const former = wanted?.map((version) => ({ ...version, additionalPrinterColumns: [] }));
  await kube.mergePatch(customResourceDefinitions, changed, { spec: { versions: former } });
  expect(await versions()).not.toEqual(wanted);
  return wanted;
}

/** As it was before some values came: without their defaults, and without a schema. */
async function formerChart(): Promise<string> {
  const folder = path.join(scratch, 'former');
  await cp(chart, folder, { recursive: true });
  await rm(path.join(folder, 'values.schema.json'));
  const file = path.join(folder, 'values.yaml');
  const { storage, preflight: _, ...others } = yaml.parse(await readFile(file, 'utf8'));
  const { capacityClassName: __, ...before } = storage;
  await writeFile(file, yaml.stringify({ ...others, storage: before }));
  return folder;
}

describe('a release of the chart', () => {
  test('whose agent does not become ready is taken back with --atomic, and leaves the definitions alone', async () => {
    const file = await values({ image: 'isthmus.test/agent:0' });
    const flags = ['--values', file, '--atomic', '--timeout', '30s'];
    const { code, stderr, said } = await played('install', release, chart, ...flags);
    expect([code, stderr, said]).toEqual([
      1,
      expect.stringContaining('has been uninstalled due to atomic being set'),
      expect.stringContaining(definitionsApplied),
    ]);
    const left = [...before, ...(await definitions()), ...(await ofStorage())].sort().join();
    const isAsBefore = async () => (await everything()).join() === left;
    await eventually('nothing else to be left', isAsBefore, { withinMs: 60_000, everyMs: 1_000 });
  }, 180_000);

  test('is refused before anything is written where a check stops: the hook says which, and how it is mended', async () => {
    const network = { podCidrs: ['10.200.0.0/16'], serviceCidr: '10.96.0.0/12', externalCidr: '10.96.0.0/16' };
    const file = await values({ image: 'isthmus.test/agent:0', network });
    const flags = ['--values', file, '--timeout', '60s'];
    const { code, stderr, said } = await played('install', release, chart, ...flags);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`job ${release}-preflight failed`)]);
    expect(said).toMatch(/ranges +stop/);
    expect(said).toContain('10.96.0.0/16');
    expect(said).toContain('to do: ');
    expect(said).not.toContain(definitionsApplied);
    expect((await kube.list(deployments, undefined, 'liqo')).length).toBe(0);
    const gone = await helm('uninstall', release, '--no-hooks');
    expect(gone.code, gone.stderr).toBe(0);
    await kubectl('delete', 'all,sa,cm', '-n', 'default', '-l', 'app.kubernetes.io/managed-by=Helm');
    const ignored = await values({ image: 'isthmus.test/agent:0', network, preflight: { ignore: ['ranges'] } });
    const { stdout } = await helm('template', release, chart, '--values', ignored);
    expect(stdout).toContain('"--ignore-check"');
    const off = await values({ image: 'isthmus.test/agent:0', network, preflight: { enabled: false } });
    expect((await helm('template', release, chart, '--values', off)).stdout).not.toContain('-preflight');
  }, 120_000);

  test('is installed into a cluster that has none of our objects but definitions of a former release', async () => {
    const wanted = await ageDefinition();
    const file = await values({ metrics: 'authenticated', image: 'isthmus.test/agent:1' });
    const { code, stderr, stdout, said } = await played('install', release, chart, '--values', file);
    expect(code, stderr).toBe(0);
    // No agent runs here.
    expect(said).toContain(definitionsApplied);
    expect(await versions()).toEqual(wanted);
    expect(said).toContain('Isthmus does not work after 1 s: the agent has not registered its webhooks.');
    expect(stdout).toContain('first run `isthmus uninstall');
    const objects = await released();
    expect(objects.length).toBeGreaterThan(30);
    expect(await missing(objects)).toEqual([]);
    expect(await kube.list(customResourceDefinitions)).toHaveLength(allKinds.length);
    expect(await kube.get(configMaps, { namespace: 'liqo', name: 'liqo-clusterid-configmap' })).toMatchObject({
      data: { CLUSTER_ID: 'rome' },
    });
    expect([await image(), await share()]).toEqual(['isthmus.test/agent:1', 90]);
  }, 120_000);

  test('is upgraded: changed values and definitions arrive, what is no longer asked for goes', async () => {
    const wanted = await ageDefinition();
    const later = { name: 'retainedvolumes.isthmus.dev' };
    await kube.delete(customResourceDefinitions, later);
    const isGone = async () => (await kube.get(customResourceDefinitions, later)) === undefined;
    await eventually('that definition to be gone', isGone, { withinMs: 60_000 });
    const file = await values({ image: 'isthmus.test/agent:2', sharePercent: 70 });
    const { code, stderr, said } = await played('upgrade', release, chart, '--values', file);
    expect(code, stderr).toBe(0);
    expect(said).toContain(definitionsApplied);
    expect(await versions()).toEqual(wanted);
    expect(await definitions()).toHaveLength(allKinds.length);
    expect([await image(), await share()]).toEqual(['isthmus.test/agent:2', 70]);
    expect([await metricsService(), await metricsReader()]).toEqual([undefined, undefined]);
    expect(await missing(await released())).toEqual([]);
  }, 120_000);

  test('is rolled back to what it was', async () => {
    const { code, stderr } = await helm('rollback', release, '1');
    expect(code, stderr).toBe(0);
    expect([await image(), await share()]).toEqual(['isthmus.test/agent:1', 90]);
    expect(await metricsService()).toBeDefined();
    expect(await missing(await released())).toEqual([]);
  }, 120_000);

  test('is upgraded with the values of a release that did not have all values of today yet', async () => {
    const former = await formerChart();
    const file = await values({ image: 'isthmus.test/agent:1' });
    const downgrade = await played('upgrade', release, former, '--values', file);
    expect(downgrade.code, downgrade.stderr).toBe(0);
    const flags = ['--reuse-values', '--set', 'image=isthmus.test/agent:2'];
    const { code, stderr } = await played('upgrade', release, chart, ...flags);
    expect(code, stderr).toBe(0);
    expect([await image(), await share()]).toEqual(['isthmus.test/agent:2', 90]);
    expect(await kube.get(storageClasses, { name: 'isthmus' })).toBeDefined();
    expect(await missing(await released())).toEqual([]);
  }, 180_000);

  test('is not uninstalled under an agent: everything stays, and the hook says what to do', async () => {
    const service = { namespace: 'liqo', name: admission.service };
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }];
    await kube.create(mutatingWebhookConfigurations, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: admission.configuration, labels: { [admission.label]: 'true' } },
      webhooks: [
        {
          name: 'pod.mutate.liqo.io',
          clientConfig: { service },
          rules,
          failurePolicy: 'Fail',
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          namespaceSelector: { matchLabels: { 'liqo.io/scheduling-enabled': 'true' } },
        },
      ],
    } as KubeObject);
    const held = { namespace: 'default', name: 'held' };
    await kube.create(networks, {
      apiVersion: 'ipam.liqo.io/v1alpha1',
      kind: 'Network',
      metadata: { ...held, finalizers: ['isthmus.test/held'] },
      spec: { cidr: '10.71.0.0/16' },
    });
    const objects = await released();
    const { code, stderr, said } = await uninstall();
    expect(code, stderr).not.toBe(0);
    expect(stderr).toContain(`job ${release}-before-delete failed`);
    expect(said).toContain('Run `isthmus uninstall --kubeconfig FILE` first');
    expect(said).toContain('MutatingWebhookConfiguration isthmus-webhook, 1 Network.');
    await kube.mergePatch(networks, held, { metadata: { finalizers: [] } });
    await kube.delete(networks, held);
    expect(await missing(objects)).toEqual([]);
  }, 180_000);

  test('goes on after that refusal: by a rollback to what runs, then by an upgrade', async () => {
    const file = await values({ image: 'isthmus.test/agent:3' });
    expect((await helm('upgrade', release, chart, '--values', file)).stderr).toContain('has no deployed releases');
    const rollback = await helm('rollback', release, '5');
    expect(rollback.code, rollback.stderr).toBe(0);
    const upgrade = await played('upgrade', release, chart, '--values', file);
    expect(upgrade.code, upgrade.stderr).toBe(0);
    expect(await image()).toBe('isthmus.test/agent:3');
  }, 120_000);

  test('keeps the claims that have the data of volumes of this cluster when its storage is turned off', async () => {
    await kube.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: ofVolume,
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    const file = await values({ image: 'isthmus.test/agent:3', storage: { enabled: false } });
    const { code, stderr } = await played('upgrade', release, chart, '--values', file);
    expect(code, stderr).toBe(0);
    expect(await kube.get(storageClasses, { name: 'liqo' })).toBeUndefined();
    const claim = await kube.get(persistentVolumeClaims, ofVolume);
    expect(claim && 'deletionTimestamp' in claim.metadata).toBe(false);
  }, 120_000);

  test('is uninstalled after `isthmus uninstall`, with these claims and nothing else left, and with --purge nothing without them', async () => {
    const target = ['--kubeconfig', server.kubeconfigPath];
    const taken = await isthmus(['uninstall', ...target]);
    expect(taken.code, taken.err).toBe(0);
    const { code, stderr, said } = await uninstall();
    expect([code, said], stderr).toEqual([0, '']);
    const claim = await kube.get(persistentVolumeClaims, ofVolume);
    expect(claim && 'deletionTimestamp' in claim.metadata).toBe(false);
    await kube.delete(persistentVolumeClaims, ofVolume);
    const isGone = async () => (await kube.get(persistentVolumeClaims, ofVolume)) === undefined;
    await eventually('the claim to be gone', isGone, { withinMs: 60_000 });
    expect(await everything()).toEqual([...before, ...(await definitions()), ...(await ofStorage())].sort());
    const purged = await isthmus(['uninstall', '--purge', ...target]);
    expect(purged.code, purged.err).toBe(0);
    // Discovery goes on naming kinds for a moment after their definitions are gone.
    const isAsBefore = async () => (await everything().catch(() => [])).join() === before.join();
    await eventually('the cluster to be as before', isAsBefore, { withinMs: 60_000, everyMs: 1_000 });
  }, 240_000);
});
