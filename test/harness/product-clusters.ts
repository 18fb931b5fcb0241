/** A whole small world: real clusters, a broker and agents in pods, driven as a user would, through the CLI and kubectl. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buildAgentImage } from '#scripts/image/agent-image.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { withFileLock } from '#scripts/setup/file-lock.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { groupProcesses, nodeGroup } from '#test/testbed/cgroups.ts';
import { endProcess, killAll } from '#test/testbed/processes.ts';
import { slotOf } from '#test/testbed/slots.ts';
import type { ClusterRequest } from '#test/testbed/spec.ts';
import { type Bed, type BedCluster, down, up } from '#test/testbed/testbed.ts';
import { ownLogs, warningsIn } from './cluster-warnings.ts';
import { eventually } from './eventually.ts';
import { background, type Ended, must, run } from './program.ts';

export interface ProductClustersOptions {
  readonly root: string;
  /** A name alone is a cluster of one node, in ranges of its own. */
  readonly clusters: readonly (string | ClusterRequest)[];
  /** State of broker and CLI; the test bed has its own folder inside. Default `.testbed` of the repository. */
  readonly dir?: string;
  readonly log?: (line: string) => void;
  readonly brokerPort?: number;
  /** Further arguments of `isthmus broker serve`. */
  readonly brokerFlags?: readonly string[];
}

interface Broker {
  readonly url: string;
  readonly logFile: string;
  running(): boolean;
  start(): Promise<void>;
  /** SIGTERM unless told. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

export type OwnPids = Readonly<Record<'agent' | 'node' | 'gateway' | 'tools', readonly number[]>>;

export interface ProductClusters {
  readonly bed: Bed;
  readonly broker: Broker;
  readonly image: string;
  cluster(name: string): BedCluster;
  /** Runs the CLI, logged in at the broker; never rejects for an exit code. */
  isthmus(...args: readonly string[]): Promise<Ended>;
  /** Runs the CLI and rejects unless it succeeds. */
  mustIsthmus(...args: readonly string[]): Promise<string>;
  /** Of broker and CLI; goes with the world. */
  readonly stateDir: string;
  /** Installs the agent there and waits until it is connected. */
  join(name: string, ...flags: readonly string[]): Promise<void>;
  /** Pids of the agent processes of a cluster, on this host. */
  agentPids(name: string): number[];
  /** Pids of all that is ours in a cluster, by what runs: controllers, node processes, what holds the tunnels, and tools that run on for them. */
  ownPids(name: string): OwnPids;
  close(): Promise<void>;
}

const agentProgram = /\/app\/main\.mjs/;
const cli = (root: string) => path.join(root, 'bin', 'isthmus.mjs');

/** Clusters up, image in them, broker running, CLI logged in; nothing has joined yet. Everything that runs already is kept. */
export async function openProductClusters(options: ProductClustersOptions): Promise<ProductClusters> {
  const { root, log = () => undefined } = options;
  const dir = path.resolve(options.dir ?? path.join(root, '.testbed'));
  const state = path.join(dir, 'world');
  opened.add(dir);
  const image = await buildAgentImage(root, { unique: true, log });
  const clusters = options.clusters.map((cluster) => (typeof cluster === 'string' ? { name: cluster } : cluster));
  // Machine-wide: worlds that boot together take as long as one after the other, and every deadline near them suffers.
  const bed = await withFileLock(path.join(cacheDir(), 'locks', 'world-boots'), async () => {
    const booted = await up({ dir, clusters, log });
    mkdirSync(state, { recursive: true });
    log(`agent image ${image.reference}, ${(image.compressedBytes / 1e6).toFixed(0)} MB`);
    await Promise.all(booted.clusters.map((cluster) => importOnce(cluster, image.reference, image.tarPath, state)));
    return booted;
  });

  const listen = `${bed.hostAddress}:${options.brokerPort ?? 7443}`;
  const { broker, isthmus, mustIsthmus } = await openBroker({
    root,
    state,
    listen,
    ...(options.brokerFlags !== undefined && { flags: options.brokerFlags }),
  });

  return {
    bed,
    broker,
    image: image.reference,
    cluster: (name) => bed.cluster(name),
    isthmus,
    mustIsthmus,
    stateDir: state,
    async join(name, ...flags) {
      const target = ['--kubeconfig', bed.cluster(name).kubeconfigPath, '--image', image.reference];
      await mustIsthmus('join', name, ...target, ...moreThanThereIs, ...flags);
    },
    agentPids: (name) => pidsOf(dir, bed.cluster(name), agentProgram),
    ownPids: (name) => ({
      agent: pidsOf(dir, bed.cluster(name), agentProgram),
      node: pidsOf(dir, bed.cluster(name), /\/app\/fabric\.mjs/),
      gateway: pidsOf(dir, bed.cluster(name), /^wireguard-go\0/),
      tools: pidsOf(dir, bed.cluster(name), /^(ip\0(.*\0)?monitor|nft\0(.*\0)?-i)\0/),
    }),
    close: () => removeProductClusters({ root, dir, log }),
  };
}

/** All clusters share one machine, and tests ask for more than its processors: what runs takes next to nothing. */
export const moreThanThereIs = ['--share-percent', '10000'] as const;

export interface LoggedIn {
  readonly broker: Broker;
  readonly isthmus: ProductClusters['isthmus'];
  readonly mustIsthmus: ProductClusters['mustIsthmus'];
}

/** A broker on an address of this machine, `HOST:PORT`, and the CLI logged in there; state in the folder `state`. */
export async function openBroker({ root, state, listen, flags = [] }: BrokerPlace): Promise<LoggedIn> {
  const env = { ISTHMUS_CONFIG: path.join(state, 'config.json'), NO_COLOR: '1' };
  const broker = createBroker({ root, state, listen, flags });
  await broker.start();
  const options = { env, timeoutMs: 300_000 };
  const isthmus = (...args: readonly string[]) => run(process.execPath, [cli(root), ...args], options);
  const mustIsthmus = async (...args: readonly string[]) =>
    (await must(process.execPath, [cli(root), ...args], options)).stdout;
  if (!existsSync(env.ISTHMUS_CONFIG)) await mustIsthmus(...(await loginArguments(broker.logFile)));
  return { broker, isthmus, mustIsthmus };
}

/** By this process: what earlier ones were warned of is not its failure. */
const opened = new Set<string>();

/** Removes what `openProductClusters` left in `dir`, whether or not it finished. Rejects after that when Node has warned a process in there of a leak. */
export async function removeProductClusters(
  options: Pick<ProductClustersOptions, 'root' | 'dir' | 'log'>,
): Promise<void> {
  const dir = path.resolve(options.dir ?? path.join(options.root, '.testbed'));
  const state = path.join(dir, 'world');
  const broker = createBroker({ root: options.root, state, listen: '' });
  await broker.stop();
  const warnings = opened.delete(dir) ? warningsIn([broker.logFile, ...ownLogs(dir)]) : [];
  await down({ dir, ...(options.log === undefined ? {} : { log: options.log }) });
  rmSync(state, { recursive: true, force: true });
  if (warnings.length > 0) throw new Error(`processes of ours were warned of a leak:\n${warnings.join('\n')}`);
}

async function importOnce(cluster: BedCluster, reference: string, tarPath: string, state: string): Promise<void> {
  const noteFile = path.join(state, `image-${cluster.name}`);
  // A note outlives a cluster that was removed and made again; the API server's certificate tells the two apart.
  const note = `${reference} ${readFileSync(cluster.kubeconfigPath, 'utf8').length} ${cluster.controlPlanePids()['kube-apiserver']}`;
  if (existsSync(noteFile) && readFileSync(noteFile, 'utf8') === note) return;
  await cluster.importImage(tarPath);
  writeFileSync(noteFile, note);
}

interface BrokerPlace {
  readonly root: string;
  readonly state: string;
  readonly listen: string;
  readonly flags?: readonly string[];
}

function createBroker({ root, state, listen, flags = [] }: BrokerPlace): Broker {
  const url = `https://${listen}`;
  const logFile = path.join(state, 'broker.log');
  const mark = `ISTHMUS_WORLD_BROKER=${state}\0`;
  const pids = () => pidsWith(mark);

  return {
    url,
    logFile,
    running: () => pids().length > 0,
    async start() {
      if (pids().length > 0) return;
      const data = path.join(state, 'broker');
      const before = existsSync(logFile) ? readFileSync(logFile, 'utf8').length : 0;
      const args = [cli(root), 'broker', 'serve', '--data', data, '--listen', listen, '--public-url', url, ...flags];
      background(process.execPath, args, logFile, { ISTHMUS_WORLD_BROKER: state });
      const listens = () => {
        const text = readFileSync(logFile, 'utf8').slice(before);
        if (pids().length === 0) throw new AppError('command_failed', `the broker ended: ${text.slice(-2_000)}`);
        return text.includes('listens on');
      };
      await eventually(`the broker listens on ${url}`, listens, { withinMs: 60_000, everyMs: 50 });
    },
    async stop(signal = 'SIGTERM') {
      if (signal === 'SIGKILL') await killAll(pids);
      else await Promise.all(pids().map((pid) => endProcess(pid, 10_000)));
    },
  };
}

/** The login line that the broker prints at its first start, in a write of its own after "listens on", as arguments. */
async function loginArguments(logFile: string): Promise<string[]> {
  const line = await eventually(
    `a login line in ${logFile}`,
    () => /isthmus (login \S+.*)\n/.exec(readFileSync(logFile, 'utf8'))?.[1],
    { withinMs: 10_000, everyMs: 50 },
  );
  return line.trim().split(/\s+/);
}

/** By the control group of the cluster's first node: other beds on this machine may have clusters of the same name. */
function pidsOf(dir: string, cluster: BedCluster, program: RegExp): number[] {
  const slot = slotOf(dir);
  if (slot === undefined) return [];
  const found = cluster.nodes
    .flatMap(({ name }) => groupProcesses(nodeGroup(slot, name)))
    .filter((pid) => program.test(commandOf(pid)));
  // A child has its parent's command line until it runs its own program.
  return found.filter((pid) => !found.includes(parentOf(pid)));
}

function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return 0; // it ended while we looked
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it ended while we looked
  }
}

function pidsWith(mark: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark);
      } catch {
        return false; // it ended while we looked, or is a kernel thread
      }
    });
}
