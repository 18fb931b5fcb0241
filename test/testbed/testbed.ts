/** The test bed: real Kubernetes clusters on this machine. `up` and `down` say what should be; what died in between is found and mended. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rm, rmdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureDebianPackages, testbedPackages } from '#scripts/setup/debian-packages.ts';
import { withFileLock } from '#scripts/setup/file-lock.ts';
import { buildInParts } from '#scripts/setup/go-program.ts';
import type { RunOptions } from '#scripts/setup/run-command.ts';
import { runCommand } from '#scripts/setup/run-command.ts';
import { AppError } from '#shared/errors/app-error.ts';
import {
  type BedContext,
  createCluster,
  importInto,
  placeOf,
  repairCluster,
  restartController,
  startApiServerAgain,
} from './bring-up.ts';
import { bedPrograms, buildKubernetes, buildLoopbox } from './build.ts';
import {
  assess,
  type ClusterRecord,
  clusterDir,
  componentsOf,
  type Health,
  readRecords,
  removeClusterDir,
  unrecordedRemains,
  writeRecord,
} from './cluster-state.ts';
import { buildCniImage } from './cni/images.ts';
import { checkHost, ensureKernelModules, ensureWatchers } from './host-check.ts';
import { buildImages } from './images.ts';
import { hostAddress, makeInternet } from './internet.ts';
import { execInNode } from './node.ts';
import { endProcess, killAll, runningComponents } from './processes.ts';
import { repositoryRoot } from './repository-root.ts';
import { releaseSlot, slotOf, takenSlots, takeSlot } from './slots.ts';
import {
  type ClusterRequest,
  type ClusterSpec,
  differsFrom,
  maxClusters,
  type OtherCni,
  type OtherKubernetes,
  planCluster,
} from './spec.ts';
import { removeBed, removeCluster, sweep } from './take-down.ts';

export interface BedOptions {
  /** The state folder; one bed each. `.testbed` in the repository unless told. */
  readonly dir?: string;
  readonly cache?: string;
  readonly log?: (line: string) => void;
}

export interface BedNode {
  readonly name: string;
  readonly ip: string;
  /** Runs a program in the node's namespaces; resolves with what it printed. */
  exec(command: string, args: readonly string[], options?: RunOptions): Promise<string>;
}

export interface BedCluster {
  readonly name: string;
  readonly dir: string;
  readonly kubeconfigPath: string;
  readonly apiServerUrl: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  readonly nodes: readonly BedNode[];
  /** An image tar of this host's file system goes into every node. */
  importImage(tarPath: string): Promise<void>;
  /** Kills it as a crash would when `signal` is SIGKILL; SIGTERM unless told. */
  stopApiServer(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  startApiServer(): Promise<void>;
  /** With further flags, which win over the bed's own. */
  restartController(component: 'kube-controller-manager' | 'kube-scheduler', flags: readonly string[]): Promise<void>;
  /** Process ids as the host sees them, by component; what does not run is absent. */
  controlPlanePids(): Readonly<Record<string, number>>;
  kubectl(...args: readonly string[]): Promise<string>;
}

export interface Bed {
  readonly dir: string;
  /** Where nodes and pods reach programs of this host that listen on it or on all addresses. */
  readonly hostAddress: string;
  readonly clusters: readonly BedCluster[];
  cluster(name: string): BedCluster;
}

export interface ClusterStatus {
  readonly spec: ClusterSpec;
  readonly health: Health;
}

const defaultDir = (): string => path.join(repositoryRoot, '.testbed');
const resolveDir = (options: BedOptions): string => path.resolve(options.dir ?? defaultDir());
const quiet = (): void => undefined;

const machineLock = <T>(cache: string, work: () => Promise<T>): Promise<T> =>
  withFileLock(path.join(cache, 'locks', 'testbeds'), work);

function bedLock<T>(cache: string, dir: string, work: () => Promise<T>): Promise<T> {
  const key = createHash('sha256').update(dir).digest('hex').slice(0, 12);
  return withFileLock(path.join(cache, 'locks', `testbed-${key}`), work);
}

const kubectlLink = (dir: string): string => path.join(dir, 'kubectl');

function bedCluster(slot: number, dir: string, spec: ClusterSpec): BedCluster {
  const own = clusterDir(dir, spec.name);
  const kubeconfigPath = path.join(own, 'kubeconfig');
  const pidOf = (node: string): number => {
    const pid = runningComponents(slot).get(`${node}/init`);
    if (pid === undefined)
      throw new AppError(
        'not_found',
        `node ${node} does not run: bring it up with \`npm run testbed -- up --clusters ${spec.name}\``,
      );
    return pid;
  };
  const first = spec.nodes[0]?.name ?? '';
  return {
    name: spec.name,
    dir: own,
    kubeconfigPath,
    apiServerUrl: `https://${spec.nodes[0]?.ip}:6443`,
    podCidr: spec.podCidr,
    serviceCidr: spec.serviceCidr,
    nodes: spec.nodes.map(({ name, ip }) => ({
      name,
      ip,
      exec: (command, args, options) =>
        execInNode(placeOf({ slot, dir }, spec, name), pidOf(name), command, args, options),
    })),
    importImage: async (tar) => {
      await Promise.all(spec.nodes.map(({ name }) => importInto(placeOf({ slot, dir }, spec, name), pidOf(name), tar)));
    },
    stopApiServer: async (signal = 'SIGTERM') => {
      const pid = runningComponents(slot).get(`${first}/kube-apiserver`);
      if (pid === undefined) return;
      if (signal === 'SIGKILL') await killAll(() => [pid]);
      else await endProcess(pid, 5_000);
    },
    startApiServer: () => startApiServerAgain({ slot, dir }, spec),
    restartController: (component, flags) => restartController({ slot, dir }, spec, component, flags),
    controlPlanePids: () => {
      const running = runningComponents(slot);
      const found = componentsOf(spec, first).map(
        (component) => [component, running.get(`${first}/${component}`)] as const,
      );
      return Object.fromEntries(found.flatMap(([component, pid]) => (pid === undefined ? [] : [[component, pid]])));
    },
    kubectl: (...args) => runCommand(kubectlLink(dir), [`--kubeconfig=${kubeconfigPath}`, ...args]),
  };
}

function bedOf(slot: number, dir: string, specs: readonly ClusterSpec[]): Bed {
  const clusters = specs.map((spec) => bedCluster(slot, dir, spec));
  return {
    dir,
    hostAddress: hostAddress(slot),
    clusters,
    cluster: (name) => {
      const found = clusters.find((cluster) => cluster.name === name);
      if (!found) {
        const known = clusters.map((cluster) => cluster.name).join(', ') || 'none';
        throw new AppError('not_found', `no cluster ${JSON.stringify(name)} in the test bed; there are: ${known}`);
      }
      return found;
    },
  };
}

/** Beds whose folder was removed while they ran, and anything of ours without a record. */
async function removeLeftovers(dir: string, cache: string, log: (line: string) => void): Promise<number> {
  return await machineLock(cache, async () => {
    for (const other of takenSlots()) {
      if (other.dir === dir || existsSync(other.dir)) continue;
      log(`removing what is left of a test bed in ${other.dir}`);
      await removeBed(other.slot);
      releaseSlot(other.slot);
    }
    return takeSlot(dir);
  });
}

async function removeBroken(slot: number, dir: string, log: (line: string) => void): Promise<ClusterRecord[]> {
  const kept: ClusterRecord[] = [];
  for (const record of readRecords(dir)) {
    const health = assess(record, runningComponents(slot));
    if (health.state !== 'broken') kept.push(record);
    else {
      log(`${record.spec.name}: removing the remains, ${health.why}`);
      await removeCluster(slot, dir, record.spec);
    }
  }
  const strays = await sweep(
    slot,
    kept.map(({ spec }) => spec),
  );
  if (strays.length > 0) log(`removed leftovers: ${strays.join(', ')}`);
  return kept;
}

async function prepareMachine(
  cache: string,
  requests: readonly ClusterRequest[],
  log: (line: string) => void,
): Promise<Pick<BedContext, 'kubebox' | 'kubernetes' | 'nodebox' | 'loopbox' | 'images' | 'cniImages'>> {
  const storage = requests.some((request) => request.storage);
  checkHost();
  await ensureDebianPackages(testbedPackages, cache, log);
  await ensureKernelModules(storage);
  ensureWatchers();
  const { kubebox, nodebox } = await buildInParts(bedPrograms, { cache, log });
  const loopbox = storage ? await buildLoopbox({ cache, log }) : undefined;
  const kubernetes = new Map<OtherKubernetes, string>();
  for (const version of new Set(requests.flatMap((request) => request.kubernetes ?? [])))
    kubernetes.set(version, await buildKubernetes(version, { cache, log }));
  const cniImages = new Map<OtherCni, string>();
  for (const cni of new Set(requests.flatMap((request) => request.cni ?? [])))
    cniImages.set(cni, await buildCniImage(cni, cache, log));
  return { kubebox, kubernetes, nodebox, loopbox, images: await buildImages(cache, log), cniImages };
}

function planNew(slot: number, existing: readonly ClusterSpec[], requests: readonly ClusterRequest[]): ClusterSpec[] {
  const specs: ClusterSpec[] = [];
  for (const request of requests) {
    const present = [...existing, ...specs].find(({ name }) => name === request.name);
    const conflict = present && differsFrom(present, request);
    if (conflict) throw new AppError('already_exists', conflict);
    if (present) continue;
    const used = new Set([...existing, ...specs].map(({ index }) => index));
    const index = Array.from({ length: maxClusters }, (_, i) => i + 1).find((i) => !used.has(i));
    if (index === undefined) throw new AppError('invalid_input', `a test bed holds at most ${maxClusters} clusters`);
    specs.push(planCluster(slot, index, request));
  }
  return specs;
}

/** Makes these clusters run, beside those that run already. Does nothing for a cluster that is whole. */
export async function up(options: BedOptions & { readonly clusters: readonly ClusterRequest[] }): Promise<Bed> {
  const [dir, cache, log] = [resolveDir(options), options.cache ?? cacheDir(), options.log ?? quiet];
  planNew(0, [], options.clusters); // refuse bad requests before minutes of building
  const machine = await prepareMachine(cache, options.clusters, log);
  return await bedLock(cache, dir, async () => {
    await mkdir(dir, { recursive: true });
    const slot = await removeLeftovers(dir, cache, log);
    const kept = await removeBroken(slot, dir, log);
    const fresh = planNew(
      slot,
      kept.map(({ spec }) => spec),
      options.clusters,
    );
    const bed: BedContext = { slot, dir, log, ...machine };
    await makeInternet(slot);
    await rm(kubectlLink(dir), { force: true });
    await symlink(machine.kubebox, kubectlLink(dir));
    const create = async (spec: ClusterSpec): Promise<void> => {
      writeRecord(dir, { spec, phase: 'creating' });
      await createCluster(bed, spec);
      writeRecord(dir, { spec, phase: 'ready' });
    };
    const mend = async (record: ClusterRecord): Promise<void> => {
      const health = assess(record, runningComponents(slot));
      if (health.state === 'lame') await repairCluster(bed, record.spec, health.missing);
    };
    const results = await Promise.allSettled([...kept.map(mend), ...fresh.map(create)]);
    const failure = results.find((result) => result.status === 'rejected');
    if (failure) throw failure.reason;
    return bedOf(
      slot,
      dir,
      readRecords(dir).map(({ spec }) => spec),
    );
  });
}

/** The folder may hold what is not ours: then it stays. */
async function removeState(dir: string, clusters: readonly string[]): Promise<void> {
  for (const name of [...clusters, ...unrecordedRemains(dir)]) await removeClusterDir(dir, name);
  await rm(kubectlLink(dir), { force: true });
  await rmdir(dir).catch(() => undefined);
}

/** Removes these clusters, or all of them and the bed itself. Nothing to remove is fine. */
export async function down(options: BedOptions & { readonly clusters?: readonly string[] } = {}): Promise<void> {
  const [dir, cache, log] = [resolveDir(options), options.cache ?? cacheDir(), options.log ?? quiet];
  checkHost();
  await bedLock(cache, dir, async () => {
    const slot = slotOf(dir);
    const records = readRecords(dir);
    const wanted = options.clusters ?? records.map(({ spec }) => spec.name);
    const unknown = wanted.find((name) => !records.some(({ spec }) => spec.name === name));
    if (unknown !== undefined)
      throw new AppError('not_found', `no cluster ${JSON.stringify(unknown)} in the test bed ${dir}`);
    const gone = records.filter(({ spec }) => wanted.includes(spec.name));
    if (slot !== undefined) {
      await Promise.all(gone.map(({ spec }) => removeCluster(slot, dir, spec)));
      await sweep(
        slot,
        records.filter((record) => !gone.includes(record)).map(({ spec }) => spec),
      );
    }
    for (const { spec } of gone) log(`${spec.name}: removed`);
    if (gone.length < records.length) return;
    await machineLock(cache, async () => {
      // Without a slot nothing runs, for instance because the machine was restarted. What runs may still write into the folder.
      if (slot !== undefined) await removeBed(slot);
      await removeState(
        dir,
        records.map(({ spec }) => spec.name),
      );
      if (slot !== undefined) releaseSlot(slot);
    });
  });
}

/** What stands; looks only. */
export async function status(
  options: BedOptions = {},
): Promise<{ readonly bed: Bed; readonly clusters: readonly ClusterStatus[] }> {
  checkHost(); // others cannot see root's processes and would call everything broken
  const dir = resolveDir(options);
  const slot = slotOf(dir) ?? 0;
  const records = readRecords(dir);
  const running = slotOf(dir) === undefined ? new Map<string, number>() : runningComponents(slot);
  const clusters = records.map((record) => ({ spec: record.spec, health: assess(record, running) }));
  return {
    bed: bedOf(
      slot,
      dir,
      records.map(({ spec }) => spec),
    ),
    clusters,
  };
}
