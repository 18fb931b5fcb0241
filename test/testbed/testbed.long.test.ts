import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '#scripts/setup/run-command.ts';
import { setUpMachine } from '#scripts/setup/setup.ts';
import { bedProcesses, runningComponents } from './processes.ts';
import { repositoryRoot } from './repository-root.ts';
import { slotOf, takenSlots } from './slots.ts';
import { type Bed, type BedCluster, down, status, up } from './testbed.ts';

// A bed of its own: the developer's `.testbed` may be up meanwhile.
const dir = path.join(repositoryRoot, '.build', 'testbed-under-test');
const aside = `${dir}-deleted`;
const log = (line: string): void => console.error(line);
const started = { rome: 0, milan: 0 };
let bed: Bed;
let slot: number;

beforeAll(async () => {
  await setUpMachine({ log });
  await down({ dir, log });
  for (const left of [dir, aside]) await rm(left, { recursive: true, force: true });
}, 1_800_000);
afterAll(async () => await down({ dir, log }), 120_000);

const patient = { timeout: 30_000 } as const;
const image = 'isthmus.test/workload:1';
const pod = (name: string, node: string, ...args: string[]): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: name } },
  spec: { nodeName: node, terminationGracePeriodSeconds: 5, containers: [{ name: 'main', image, args }] },
});
const service = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 8080 }] },
});

async function apply(cluster: BedCluster, ...items: object[]): Promise<void> {
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await runCommand(path.join(dir, 'kubectl'), [`--kubeconfig=${cluster.kubeconfigPath}`, 'apply', '-f', '-'], {
    input,
  });
}

/** Process 0 would be this test and its parent. */
function pidIn(running: ReadonlyMap<string, number>, component: string): number {
  const pid = running.get(component);
  if (pid === undefined) throw new Error(`${component} does not run; what does: ${[...running.keys()].join(', ')}`);
  return pid;
}

/** What is on this machine of the bed: nothing after `down`. */
async function traces(of: number): Promise<string[]> {
  const name = `isthmus${of}`;
  const groups = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , kind]) => kind?.startsWith('cgroup'))
    .map(([, where = '']) => path.join(where, name));
  const interfaces = (await runCommand('ip', ['-o', 'link'])).split('\n').filter((line) => line.includes(name));
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .filter((line) => line.includes(dir) || line.includes(name));
  const namespaces = existsSync('/run/netns') ? readdirSync('/run/netns').filter((each) => each === name) : [];
  return [
    ...bedProcesses(of).map(({ pid, node, component }) => `process ${pid} ${node} ${component}`),
    ...groups.filter((group) => existsSync(group)),
    ...interfaces,
    ...mounts,
    ...namespaces,
    ...takenSlots()
      .filter((taken) => taken.slot === of)
      .map((taken) => `slot ${taken.slot}`),
    ...(existsSync(dir) ? [dir] : []),
  ];
}

describe('two clusters with equal pod ranges, one of them with two nodes', () => {
  beforeAll(async () => {
    const seen = Date.now();
    const clusters = [
      { name: 'rome', podCidr: '10.5.0.0/16' },
      { name: 'milan', podCidr: '10.5.0.0/16', nodes: 2 },
    ];
    bed = await up({
      dir,
      clusters,
      log: (line) => {
        const name = /^(rome|milan): ready after/.exec(line)?.[1] as keyof typeof started | undefined;
        if (name) started[name] = Date.now() - seen;
      },
    });
    slot = slotOf(dir) ?? -1;
    const [rome, milan] = [bed.cluster('rome'), bed.cluster('milan')];
    await apply(
      milan,
      pod('web', 'milan-2', 'serve', '-text', 'hello from milan-2'),
      service('web'),
      pod('near', 'milan-2', 'sleep'),
      pod('far', 'milan-1', 'sleep'),
    );
    await apply(rome, pod('lone', 'rome-1', 'sleep'));
    await milan.kubectl('wait', '--for=condition=Ready', 'pod/web', 'pod/near', 'pod/far', '--timeout=120s');
    await rome.kubectl('wait', '--for=condition=Ready', 'pod/lone', '--timeout=120s');
  }, 480_000);

  test('are ready, each under its own address', () => {
    expect(started.rome).toBeGreaterThan(0);
    expect(started.milan).toBeGreaterThan(0);
    expect(bed.cluster('rome').apiServerUrl).not.toBe(bed.cluster('milan').apiServerUrl);
    console.error(`ready after ${started.rome} ms and ${started.milan} ms`);
  });

  test('run a pod on each node, resolve names, and reach a Service from the other node and from its own', async () => {
    const milan = bed.cluster('milan');
    for (const from of ['near', 'far']) {
      // The very first look-up may come before DNS has seen the Service.
      await expect
        .poll(() => milan.kubectl('exec', from, '--', 'get', 'http://web').catch(String), patient)
        .toBe('hello from milan-2\n');
    }
    expect(await milan.kubectl('exec', 'far', '--', 'dns', 'kubernetes.default.svc.cluster.local')).toBe(
      '10.102.0.1\n',
    );
  });

  test('carry UDP between pods of different nodes, with the address that the pod really has', async () => {
    const milan = bed.cluster('milan');
    await apply(milan, pod('echo', 'milan-2', 'udp-echo'));
    await milan.kubectl('wait', '--for=condition=Ready', 'pod/echo', '--timeout=60s');
    const [ip, from] = await Promise.all(
      ['echo', 'far'].map((name) => milan.kubectl('get', 'pod', name, '-o', 'jsonpath={.status.podIP}')),
    );
    // A pod without a probe is Ready before its program listens.
    await expect
      .poll(() => milan.kubectl('exec', 'far', '--', 'udp-send', `${ip}:9090`, 'eco').catch(String), patient)
      .toBe('eco\n');
    expect(await milan.kubectl('logs', 'echo')).toContain(`3 bytes from ${from}:`);
  });

  test('serve logs and an interactive exec', async () => {
    const milan = bed.cluster('milan');
    await expect
      .poll(() => milan.kubectl('exec', 'near', '--', 'get', 'http://web').catch(String), patient)
      .toContain('hello');
    expect(await milan.kubectl('logs', 'web')).toMatch(/GET \/ from 10\.5\./);
    const echoed = await runCommand(
      path.join(dir, 'kubectl'),
      [`--kubeconfig=${milan.kubeconfigPath}`, 'exec', '-i', 'near', '--', 'cat'],
      { input: 'ciao\n' },
    );
    expect(echoed).toBe('ciao\n');
  });

  test('let pods reach what is outside their cluster', async () => {
    const url = bed.cluster('rome').apiServerUrl; // another cluster is outside just as well
    const answer = bed.cluster('milan').kubectl('exec', 'near', '--', 'get', `${url}/healthz`);
    await expect(answer).rejects.toThrow(/certificate/); // it answered, and the pod does not trust it
  });

  test('run programs in a node on request', async () => {
    const [first] = bed.cluster('rome').nodes;
    expect(await first?.exec('hostname', [])).toBe('rome-1\n');
    expect(await first?.exec('ip', ['-o', '-4', 'addr', 'show', 'eth0'])).toContain(first?.ip);
  });

  test('keep their objects while the API server is away', async () => {
    const rome = bed.cluster('rome');
    await rome.stopApiServer('SIGKILL');
    await expect(rome.kubectl('get', 'nodes', '--request-timeout=2s')).rejects.toThrow(/refused/);
    expect(rome.controlPlanePids()).not.toHaveProperty('kube-apiserver');
    await rome.startApiServer();
    expect(await rome.kubectl('get', 'pod', 'lone', '-o', 'name')).toBe('pod/lone\n');
  }, 240_000);

  test('are left alone by an `up` that asks for what is there, and refused when it asks for something else', async () => {
    const before = bed.cluster('milan').controlPlanePids();
    await up({ dir, clusters: [{ name: 'milan', nodes: 2 }] });
    expect(bed.cluster('milan').controlPlanePids()).toEqual(before);
    await expect(up({ dir, clusters: [{ name: 'milan', nodes: 3 }] })).rejects.toThrow(
      'milan is up with nodes 2, asked for 3',
    );
  });

  test('get daemons back that were killed', async () => {
    const running = runningComponents(slot);
    for (const component of ['rome-1/kubelet', 'rome-1/containerd', 'rome-1/etcd'])
      process.kill(pidIn(running, component), 'SIGKILL');
    await expect.poll(async () => (await status({ dir })).clusters[0]?.health.state, patient).toBe('lame');
    await up({ dir, clusters: [{ name: 'rome' }] });
    expect((await status({ dir })).clusters.map(({ health }) => health.state)).toEqual(['whole', 'whole']);
    expect(await bed.cluster('rome').kubectl('get', 'pod', 'lone', '-o', 'jsonpath={.status.phase}')).toBe('Running');
  }, 240_000);

  test('are cleaned away when a node was killed, the other cluster untouched', async () => {
    const before = bed.cluster('milan').controlPlanePids();
    process.kill(pidIn(runningComponents(slot), 'rome-1/init'), 'SIGKILL');
    await expect.poll(async () => (await status({ dir })).clusters[0]?.health.state, patient).toBe('broken');
    const after = await up({ dir, clusters: [{ name: 'milan' }] });
    expect(after.clusters.map(({ name }) => name)).toEqual(['milan']);
    expect(after.cluster('milan').controlPlanePids()).toEqual(before);
    expect(bedProcesses(slot).filter(({ node }) => node === 'rome-1')).toEqual([]);
  }, 240_000);

  test('leave nothing behind', async () => {
    await down({ dir });
    expect(await traces(slot)).toEqual([]);
    await down({ dir }); // nothing to do is fine
  }, 240_000);
});

test('a killed `up` whose state folder was deleted leaves nothing that a `down` does not find', async () => {
  const cli = [
    path.join(repositoryRoot, 'scripts', 'run.mjs'),
    'test/testbed/main.ts',
    '--dir',
    dir,
    'up',
    '--clusters',
    'half',
  ];
  const bringer = spawn(process.execPath, cli, { stdio: 'ignore', cwd: repositoryRoot });
  const ended = new Promise((resolve) => bringer.once('exit', resolve));
  const running = (): string[] => [...runningComponents(slotOf(dir) ?? -1).keys()];
  await expect.poll(running, { timeout: 120_000 }).toContain('half-1/kube-apiserver');
  slot = slotOf(dir) ?? -1;
  bringer.kill('SIGKILL');
  await ended;
  expect((await status({ dir })).clusters.map(({ health }) => health.state)).toEqual(['broken']);
  // At once, as far as a path goes: what is deleted piece by piece, its daemons write again meanwhile.
  await rename(dir, aside);
  await down({ dir });
  expect(await traces(slot)).toEqual([]);
  await rm(aside, { recursive: true, force: true });
}, 240_000);

test('what is left of a state folder that was deleted by half goes with the next `down`; what is not of the bed stays', async () => {
  await up({ dir, clusters: [{ name: 'half' }] });
  slot = slotOf(dir) ?? -1;
  await rm(path.join(dir, 'half', 'cluster.json'));
  mkdirSync(path.join(dir, 'mine'));
  writeFileSync(path.join(dir, 'mine', 'notes.txt'), 'not of the bed');
  await down({ dir });
  expect(await traces(slot)).toEqual([dir]);
  expect(readdirSync(dir)).toEqual(['mine']);
  await rm(dir, { recursive: true, force: true });
}, 240_000);
