/**
 * Two clusters, of which the provider signs no certificates, and the files of a release, nothing else: its program runs in an empty folder with no Node on the
 * path. Installed by Helm and by `join`, peered, offloaded, upgraded, rolled back, taken out; the objects are those of before.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { release } from '#scripts/release/release.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { withFileLock } from '#scripts/setup/file-lock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { background, type Ended, must, run } from '#test/harness/program.ts';
import { buildHelm } from '#test/testbed/build.ts';
import { endProcess } from '#test/testbed/processes.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type Bed, up } from '#test/testbed/testbed.ts';

const builds = path.join(repositoryRoot, '.build');
const place = { root: repositoryRoot, dir: path.join(builds, 'artefacts-under-test') };
const out = path.join(builds, 'artefacts');
const machine = path.join(builds, 'bare-machine');
const clone = path.join(builds, 'artefacts-source');
const clusters = ['rome', 'milan'] as const;
type Cluster = (typeof clusters)[number];
const patience = { withinMs: 120_000, everyMs: 500 } as const;
vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
let bed: Bed;
let helmProgram: string;
let version: string;
let brokerPid = 0;
const before = new Map<Cluster, string>();

/** No Node, no configuration but its own. */
const bare = { cwd: machine, env: { PATH: '/nonexistent', HOME: machine, NO_COLOR: '1' }, timeoutMs: 300_000 };
const isthmus = (...args: readonly string[]): Promise<Ended> => run(path.join(machine, 'isthmus'), args, bare);
async function mustIsthmus(...args: readonly string[]): Promise<string> {
  const ended = await isthmus(...args);
  expect(ended.code, `isthmus ${args.join(' ')}\n${ended.stdout}${ended.stderr}`).toBe(0);
  return ended.stdout;
}
const kubeconfig = (name: Cluster): string[] => ['--kubeconfig', bed.cluster(name).kubeconfigPath];
const kubectl = (name: Cluster, ...args: readonly string[]): Promise<string> => bed.cluster(name).kubectl(...args);
async function helm(...args: readonly string[]): Promise<void> {
  const ended = await run(helmProgram, [...args, '--namespace', 'default', ...kubeconfig('rome')], {
    timeoutMs: 300_000,
  });
  if (ended.code === 0) return;
  const hooks = await kubectl('rome', '-n', 'default', 'logs', '-l', 'batch.kubernetes.io/job-name').catch(String);
  expect(ended.code, `${ended.stderr}${hooks}`).toBe(0);
}
const artefact = (name: string): string => path.join(out, name.replace('VERSION', version));

/** Objects of the whole cluster, by name. */
async function clusterWide(name: Cluster): Promise<string> {
  const kinds = (await kubectl(name, 'api-resources', '--namespaced=false', '--verbs=list', '-o', 'name'))
    .trim()
    .split('\n');
  const lasting = kinds.filter((kind) => !/^(componentstatuses|nodes\.metrics|ipaddresses)/.test(kind));
  return (await kubectl(name, 'get', lasting.join(), '-o', 'name')).trim().split('\n').sort().join('\n');
}

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  for (const folder of [out, machine, clone]) rmSync(folder, { recursive: true, force: true });
  await removeProductClusters(place);
  mkdirSync(machine, { recursive: true });
  helmProgram = await buildHelm();
  await must('git', ['clone', '--quiet', '--shared', repositoryRoot, clone]);
  await must('cp', ['-al', path.join(repositoryRoot, 'node_modules'), clone], { timeoutMs: 300_000 });
  const log = (line: string): void => console.error(line);
  ({ version } = await release({ root: clone, cache: cacheDir(), out, log, executables: ['linux-amd64'] }));
  bed = await withFileLock(path.join(cacheDir(), 'locks', 'world-boots'), () =>
    up({ dir: place.dir, clusters: clusters.map((name) => ({ name })), log }),
  );
  await bed
    .cluster('milan')
    .restartController('kube-controller-manager', ['--cluster-signing-cert-file=', '--cluster-signing-key-file=']);
  for (const name of clusters) {
    await bed.cluster(name).importImage(artefact('isthmus-agent-VERSION.tar'));
    before.set(name, await clusterWide(name));
  }
}, 1_800_000);
afterAll(async () => {
  if (brokerPid > 0) await endProcess(brokerPid, 10_000);
  await removeProductClusters(place);
  for (const folder of [out, machine, clone]) rmSync(folder, { recursive: true, force: true });
}, 180_000);

test('the checksums are right, and the program starts from its archive', async () => {
  await must('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: out });
  await must('tar', ['-xzf', artefact('isthmus-VERSION-linux-amd64.tar.gz'), '-C', machine]);
  expect(await mustIsthmus('version', '--client')).toBe(`isthmus ${version}\n`);
});

test('it runs the broker, and its check finds nothing that stops either cluster', async () => {
  const url = `${bed.hostAddress}:7690`;
  const log = path.join(machine, 'broker.log');
  const serve = [
    'broker',
    'serve',
    '--data',
    path.join(machine, 'broker'),
    '--listen',
    url,
    '--public-url',
    `https://${url}`,
  ];
  brokerPid = background(path.join(machine, 'isthmus'), serve, log, bare.env).pid ?? 0;
  const login = await eventually(
    'the login line',
    async () => /isthmus (login .*)/.exec(readFileSync(log, 'utf8'))?.[1],
  );
  await mustIsthmus(...login.split(' '));
  for (const name of clusters) await mustIsthmus('check', ...kubeconfig(name));
});

test('rome is installed by the chart and enrolled by a Secret, milan by `join`', async () => {
  const { podCidr, serviceCidr, apiServerUrl } = bed.cluster('rome');
  const ranges = [`podCidrs={${podCidr}}`, `serviceCidr=${serviceCidr}`, 'externalCidr=10.70.0.0/16'];
  const set = [
    ...['clusterId=rome', `apiServerUrl=${apiServerUrl}`, 'sharePercent=10000'],
    ...ranges.map((one) => `network.${one}`),
  ].flatMap((one) => ['--set', one]);
  await helm('install', 'isthmus', artefact('isthmus-chart-VERSION.tgz'), ...set, '--wait', '--timeout', '180s');
  const config = path.join(machine, '.config', 'isthmus', 'config.json');
  const { key, url } = JSON.parse(readFileSync(config, 'utf8')) as { readonly key: string; readonly url: string };
  const ca = path.join(machine, 'broker', 'tls', 'ca.pem');
  const headers = [`authorization: Bearer ${key}`, 'content-type: application/json', 'idempotency-key: bare-machine'];
  const ask = ['-sS', '--fail-with-body', '--cacert', ca, ...headers.flatMap((one) => ['-H', one])];
  const { stdout } = await must('curl', [...ask, '-d', '{"cluster":"rome"}', `${url}/v1/join-tokens`]);
  const { token } = JSON.parse(stdout) as { readonly token: string };
  await kubectl('rome', '-n', 'liqo', 'create', 'secret', 'generic', 'isthmus-join', `--from-literal=token=${token}`);
  await kubectl('rome', '-n', 'liqo', 'rollout', 'restart', 'deployment/isthmus-agent');
  // What `join` does besides: the chart holds no kubeconfig.
  await eventually(
    'the agent of rome to have a key that can be signed',
    async () => (await isthmus('lock', 'sign', ...kubeconfig('rome'))).code === 0,
    patience,
  );
  await mustIsthmus('join', 'milan', ...kubeconfig('milan'), '--share-percent', '10000');
  await eventually(
    'both to be connected',
    async () => {
      const text = await mustIsthmus('get', 'clusters', '-o', 'json');
      if ((text.match(/"online": ?true/g) ?? []).length < clusters.length) throw new Error(text);
      return true;
    },
    patience,
  );
});

test('rome borrows from milan by tokens, and its pod runs there', async () => {
  await mustIsthmus('peer', 'rome', 'milan', '--cpu', '2', '--memory', '2Gi', '--pods', '20', '--wait');
  await kubectl('rome', 'create', 'namespace', 'shop');
  await mustIsthmus('offload', 'namespace', 'shop', '--pod-offloading-strategy', 'Remote', ...kubeconfig('rome'));
  await kubectl(
    'rome',
    '-n',
    'shop',
    'run',
    'web',
    '--image=isthmus.test/workload:1',
    '--image-pull-policy=IfNotPresent',
    '--',
    'serve',
  );
  await kubectl('rome', '-n', 'shop', 'wait', 'pod/web', '--for=condition=Ready', '--timeout=120s');
  expect(await kubectl('rome', '-n', 'shop', 'get', 'pod', 'web', '-o', 'jsonpath={.spec.nodeName}')).toBe('milan');
  expect(await kubectl('rome', '-n', 'shop', 'exec', 'web', '--', 'get', 'http://localhost:8080/env')).not.toBe('');
  const identities = await kubectl('rome', 'get', 'identities.authentication.liqo.io', '-A', '-o', 'json');
  expect(identities).toContain('sealedToken');
  expect(identities).not.toContain('signedCRT');
});

test('an upgrade and a rollback of the release, and one of `join` that is taken back, leave the pod alone', async () => {
  const uid = (): Promise<string> =>
    kubectl('milan', 'get', 'pods', '-A', '-o', 'jsonpath={.items[?(@.metadata.name=="web")].metadata.uid}');
  const pod = await uid();
  await helm(
    'upgrade',
    'isthmus',
    artefact('isthmus-chart-VERSION.tgz'),
    '--reuse-values',
    '--set',
    'metrics=open',
    '--wait',
  );
  await helm('rollback', 'isthmus', '1', '--wait');
  await helm('test', 'isthmus');
  const ended = await isthmus(
    'join',
    'milan',
    ...kubeconfig('milan'),
    '--image',
    'isthmus.test/absent:1',
    '--timeout',
    '30s',
  );
  expect([ended.code, ended.stderr]).toEqual([8, expect.stringContaining('rolled_back')]);
  expect(await uid()).toBe(pod);
  expect(await kubectl('rome', '-n', 'shop', 'exec', 'web', '--', 'get', 'http://localhost:8080/env')).not.toBe('');
});

test('taken out, both clusters have the objects of before', async () => {
  await kubectl('rome', '-n', 'shop', 'delete', 'pod', 'web');
  await mustIsthmus('unoffload', 'namespace', 'shop', ...kubeconfig('rome'));
  await kubectl('rome', 'delete', 'namespace', 'shop');
  await mustIsthmus('unpeer', 'rome', 'milan', '--wait');
  await mustIsthmus('leave', 'rome', ...kubeconfig('rome'));
  await helm('uninstall', 'isthmus', '--timeout', '120s');
  await mustIsthmus('uninstall', '--purge', ...kubeconfig('rome'));
  await mustIsthmus('leave', 'milan', '--purge', ...kubeconfig('milan'));
  for (const name of clusters)
    await eventually(
      `${name} to be as before`,
      async () => {
        const now = await clusterWide(name);
        if (now !== before.get(name)) throw new Error(now);
        return true;
      },
      patience,
    );
});
