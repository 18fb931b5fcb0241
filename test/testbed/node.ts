/** One node: its namespaces, held by nodebox as process 1, and what runs in them. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type RunOptions, runCommand } from '#scripts/setup/run-command.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { makeNodeGroups } from './cgroups.ts';
import { inNode } from './node-config.ts';
import { markEnvironment, runningComponents } from './processes.ts';

export interface NodePlace {
  readonly slot: number;
  readonly node: string;
  readonly clusterDir: string;
}

export const nodeDir = ({ clusterDir, node }: NodePlace): string => path.join(clusterDir, 'nodes', node);
const logFile = ({ clusterDir, node }: NodePlace, component: string): string =>
  path.join(clusterDir, 'logs', `${node}.${component}.log`);

const searchPath = [inNode.bin, '/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].join(
  ':',
);

/** What a daemon sees of the environment: nothing of the shell that called `up`. */
const environment = (place: NodePlace, component: string): Record<string, string> => ({
  PATH: searchPath,
  HOME: '/root',
  LANG: 'C',
  ...markEnvironment({ slot: place.slot, node: place.node, component }),
});

const enter = (pid: number): string[] => ['--target', String(pid), '--mount', '--net', '--uts', '--ipc', '--pid'];

/** Makes the namespaces; gives back the host's process id of the node's process 1. `ownEtc`: with /etc/cni/net.d of the node's own. */
export async function startNamespaces(
  place: NodePlace,
  { nodebox, kubebox }: { readonly nodebox: string; readonly kubebox: string },
  ownEtc: boolean,
): Promise<number> {
  const dir = nodeDir(place);
  mkdirSync(dir, { recursive: true });
  mkdirSync(path.join(place.clusterDir, 'logs'), { recursive: true });
  const flags = [
    '--hostname',
    place.node,
    '--cluster',
    place.clusterDir,
    '--node',
    dir,
    '--bin',
    path.dirname(kubebox),
    ...(ownEtc ? ['--own-etc'] : []),
  ];
  return Number(await runCommand(nodebox, ['start', ...flags], { env: environment(place, 'init') }));
}

/** Starts a daemon that outlives this process, in the node's namespaces and cgroup; it runs when this resolves. */
export async function startDaemon(
  place: NodePlace,
  pid: number,
  component: string,
  argv: readonly string[],
  extra: Readonly<Record<string, string>> = {},
): Promise<void> {
  const groups = makeNodeGroups(place.slot, place.node);
  const log = openSync(logFile(place, component), 'a');
  const join = groups.map((file) => `echo $$ > ${file}`).join('\n');
  const script = `${join}\nexec nsenter ${enter(pid).join(' ')} -- setsid --fork "$@"`;
  const child = spawn('sh', ['-c', script, 'sh', ...argv], {
    stdio: ['ignore', log, log],
    cwd: '/',
    env: { ...environment(place, component), ...extra },
  });
  closeSync(log);
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('exit', resolve));
  const end = performance.now() + 5_000;
  while (code === 0 && performance.now() < end) {
    if (runningComponents(place.slot).has(`${place.node}/${component}`)) return;
    await delay(10);
  }
  throw new AppError('command_failed', lastWords(place, component));
}

/** Why a daemon ended, in its own words. */
export function lastWords(place: NodePlace, component: string): string {
  const file = logFile(place, component);
  const text = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').slice(-6).join('\n') : '';
  return `${component} of ${place.node} ended early; the end of ${file}:\n${text}`;
}

/** Runs a program in the node to its end; what it leaves running belongs to the node and ends with it. */
export function execInNode(
  place: NodePlace,
  pid: number,
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const env = { ...markEnvironment({ slot: place.slot, node: place.node, component: 'exec' }), ...options.env };
  return runCommand('nsenter', [...enter(pid), '--', command, ...args], { ...options, env });
}

/** The same with the caller's terminal; gives back the exit code. */
export async function execInteractively(place: NodePlace, pid: number, argv: readonly string[]): Promise<number> {
  const env = {
    ...process.env,
    ...markEnvironment({ slot: place.slot, node: place.node, component: 'exec' }),
    PATH: `${process.env.PATH ?? ''}:${searchPath}`,
    KUBECONFIG: `${inNode.cluster}/kubeconfig`,
  };
  const child = spawn('nsenter', [...enter(pid), '--', ...argv], { stdio: 'inherit', env });
  // The terminal sends ctrl-c to both; the program decides what it means.
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  try {
    return await new Promise((resolve, reject) =>
      child.once('error', reject).once('exit', (code) => resolve(code ?? 1)),
    );
  } finally {
    process.off('SIGINT', ignore);
  }
}

/** Waits until something listens at a socket in the node's own file system: the file alone may be an earlier life's. */
export async function waitForSocket(
  pid: number,
  file: string,
  deadlineMs: number,
  isAlive: () => boolean,
): Promise<boolean> {
  const end = performance.now() + deadlineMs;
  while (!(await listens(`/proc/${pid}/root${file}`))) {
    if (performance.now() > end || !isAlive()) return false;
    await delay(30);
  }
  return true;
}

const listens = (socketFile: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(socketFile);
    const answer = (does: boolean): void => {
      socket.destroy();
      resolve(does);
    };
    socket.once('connect', () => answer(true)).once('error', () => answer(false));
  });
