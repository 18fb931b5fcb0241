/**
 * From a former commit to this one and back, agents and command line, on two real clusters while a pod runs offloaded and is pinged over the link.
 * `ISTHMUS_FORMER` names another commit than the one that is usual.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { deployments } from '#shared/domain/core-kinds.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { NetnsFixture } from '#test/harness/netns.ts';
import {
  moreThanThereIs,
  openProductClusters,
  type ProductClusters,
  removeProductClusters,
} from '#test/harness/product-clusters.ts';
import { must } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { answersExec, here, lives, startSteady, steady } from '../brokerless/steady-pod.ts';
import { podPlace } from '../network/test-pods.ts';
import {
  type ClusterName,
  clusterNames,
  consumer,
  createStage,
  isReady,
  patience,
  type Stage,
} from '../whole-clusters/stage.ts';
import { container, pod } from '../whole-clusters/workloads.ts';

const formerCommit = process.env.ISTHMUS_FORMER ?? 'd0e5e3a69ab39b61a8dae570ee204735831f749a';
const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'two-versions') };
const former = path.join(repositoryRoot, '.build', 'former-version');
const pings = path.join(repositoryRoot, '.build', 'two-versions-pings.log');
vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
let fixture: ProductClusters;
let stage: Stage;
let formerImage: string;
let before: readonly unknown[];
let pinging: ReturnType<typeof spawn> | undefined;
const netns = new NetnsFixture();

/** The command line of that commit, logged in as ours is. */
const formerly = (...args: readonly string[]) =>
  must(process.execPath, [path.join(former, 'bin', 'isthmus.mjs'), ...args], {
    cwd: former,
    env: { ISTHMUS_CONFIG: path.join(fixture.stateDir, 'config.json'), NO_COLOR: '1' },
    timeoutMs: 400_000,
  });
const joinFormerly = (name: ClusterName) =>
  formerly(
    ...['join', name, '--kubeconfig', fixture.cluster(name).kubeconfigPath, '--image', formerImage],
    ...moreThanThereIs,
  );

/** Builds the agent's image of that commit and resolves with its reference and file. */
async function buildFormer(): Promise<{ readonly reference: string; readonly tar: string }> {
  rmSync(former, { recursive: true, force: true });
  await must('git', ['clone', '--quiet', '--shared', '--no-checkout', repositoryRoot, former]);
  await must('git', ['-C', former, 'checkout', '--quiet', formerCommit]);
  await must('cp', ['-al', path.join(repositoryRoot, 'node_modules'), former], { timeoutMs: 300_000 });
  const tar = path.join(former, 'agent.tar');
  const build = ['scripts/run.mjs', 'scripts/image/main.ts', '--save', tar, '--platform', 'linux/amd64'];
  const { stdout } = await must(process.execPath, build, { cwd: former, timeoutMs: 600_000 });
  return { reference: /^reference\s+(\S+)$/m.exec(stdout)?.[1] ?? '', tar };
}

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  await removeProductClusters(place);
  mkdirSync(path.dirname(pings), { recursive: true });
  rmSync(pings, { force: true });
  const { reference, tar } = await buildFormer();
  formerImage = reference;
  fixture = await openProductClusters({ ...place, clusters: [...clusterNames], brokerPort: 7689 });
  expect(formerImage).not.toBe(fixture.image);
  await Promise.all(clusterNames.map((name) => fixture.cluster(name).importImage(tar)));
  await Promise.all(clusterNames.map(joinFormerly));
  stage = await createStage(fixture);
  await stage.mustPeer();
  await stage.createNamespace(here);
  await stage.mustOffload(here, '--strategy', 'Remote');
  await startSteady(stage);
  await stage.apply(consumer, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'home' } });
  await stage.apply(consumer, pod('home', 'near', [container(['serve'])]));
  const near = podPlace(netns, await stage.podThat(consumer, ['home', 'near'], 'is ready', isReady));
  const far = (await stage.pod(consumer, here, steady))?.status?.podIP ?? '';
  const log = openSync(pings, 'a');
  // Until it is ended; a line with the time for each answer.
  pinging = spawn('nsenter', ['-t', String(near.netns.pid), '-n', 'ping', '-D', '-n', '-i', '0.2', far], {
    stdio: ['ignore', log, log],
  });
  await eventually('the first answer', async () => answers().length > 0, patience);
  before = await lives(stage);
}, 900_000);
afterAll(async () => {
  pinging?.kill('SIGKILL');
  await netns.close();
  await removeProductClusters(place);
  rmSync(former, { recursive: true, force: true });
  rmSync(pings, { force: true });
}, 180_000);

/** Times in seconds. */
const answers = (): number[] =>
  [...readFileSync(pings, 'utf8').matchAll(/^\[(\d+\.\d+)\] \d+ bytes from/gm)].map(([, at]) => Number(at));

/** Of the time since `from`, the longest without an answer, in seconds. */
function longestGap(from: number): number {
  const all = [from, ...answers().filter((at) => at > from), Date.now() / 1_000];
  return Math.max(...all.slice(1).map((at, i) => at - (all[i] ?? at)));
}

const imageOf = async (name: ClusterName): Promise<string | undefined> =>
  (await stage.api(name).get(deployments, { namespace: systemNamespace, name: 'isthmus-agent' }))?.spec?.template.spec
    ?.containers[0]?.image;

/** The peering works as before, and the pod noticed nothing but what is printed. */
async function goesOn(what: string, from: number): Promise<void> {
  await eventually('Ready', async () => (await stage.peering())?.phase === 'Ready', patience);
  await eventually('a command in the pod', () => answersExec(stage), patience);
  const already = answers().length;
  await eventually('answers', async () => answers().length > already + 10, patience);
  console.log(`${what}: the longest time without an answer to a ping was ${longestGap(from).toFixed(1)} s`);
  expect(await lives(stage)).toEqual(before);
}

test('both clusters are brought to this version, the provider first: the offloaded pod runs on', async () => {
  const from = Date.now() / 1_000;
  for (const name of [...clusterNames].reverse()) {
    await fixture.join(name);
    expect(await imageOf(name)).toBe(fixture.image);
  }
  await goesOn('from the former version to this one', from);
});

test('both are brought back by the former command line, and forth again: the pod runs on', async () => {
  const from = Date.now() / 1_000;
  for (const name of clusterNames) {
    await joinFormerly(name);
    expect(await imageOf(name)).toBe(formerImage);
  }
  await goesOn('from this version to the former one', from);
  const again = Date.now() / 1_000;
  for (const name of clusterNames) await fixture.join(name);
  await goesOn('and to this one again', again);
});

test('the peering ends with nothing in its way', async () => {
  const ended = await fixture.isthmus('unpeer', consumer, 'milan', '--wait');
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stderr).not.toContain('left behind');
});
