/** A real API server for tests: etcd and kube-apiserver (and on request kube-controller-manager) on loopback, ready in seconds. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, closeSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { type Access, waitUntilReady } from '#test/testbed/api-ready.ts';
import { keepUsedRights } from '#test/testbed/asked-rights.ts';
import { buildKubebox } from '#test/testbed/build.ts';
import {
  apiServerArgs,
  apiServerUrl,
  type ControlPlane,
  controllerManagerArgs,
  etcdArgs,
  writeCredentials,
} from '#test/testbed/control-plane.ts';

export interface ApiServerOptions {
  /** Where data, certificates and logs go; kept by `stop()` when given, else a temporary folder that `stop()` removes. */
  readonly dir?: string;
  /** More flags of kube-apiserver; a repeated flag wins over ours. */
  readonly flags?: readonly string[];
  /** Also run kube-controller-manager: garbage collection, namespace deletion, signing of certificates, service accounts. */
  readonly controllerManager?: boolean;
}

/** What a test needs to be a client of an API server, and nothing with which to harm it. */
export interface ApiServer {
  readonly url: string;
  readonly ca: string;
  readonly adminCert: string;
  readonly adminKey: string;
  readonly kubeconfig: string;
  readonly kubeconfigPath: string;
  readonly dir: string;
  readonly kubebox: string;
  /** The caller is done with it. Of a server of its own: ends everything; removes the folder unless the caller named it. */
  stop(): Promise<void>;
}

/** A server of the caller's own. */
export interface TestApiServer extends ApiServer {
  /** Kills kube-apiserver as a crash would (SIGKILL), etcd stays. */
  kill(): Promise<void>;
  /** Starts what is not running, with the same data, address and certificates; resolves when ready. */
  start(): Promise<void>;
  /** Replaces kube-controller-manager, if one runs, by one with these flags besides ours. */
  restartControllerManager(flags: readonly string[]): Promise<void>;
  /** Ends kube-controller-manager and stops the others with SIGSTOP: an idle server takes 2.7 % of a processor. It answers nothing until `resume()`. */
  pause(): Promise<void>;
  /** Without kube-controller-manager: see `restartControllerManager`. */
  resume(): void;
}

type Component = 'etcd' | 'kube-apiserver' | 'kube-controller-manager';

/** A port that was free a moment ago. The bind may lose a race and must then try another. */
async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

class Processes {
  readonly #children = new Map<Component, ChildProcess>();
  readonly #dir: string;
  readonly #kubebox: string;

  constructor(dir: string, kubebox: string) {
    this.#dir = dir;
    this.#kubebox = kubebox;
  }

  logFile(component: Component): string {
    return path.join(this.#dir, 'logs', `${component}.log`);
  }

  start(component: Component, args: readonly string[]): void {
    if (this.isRunning(component)) return;
    const log = openSync(this.logFile(component), 'a');
    // KUBEBOX_DIE_WITH_PARENT: a test that is killed takes its API server along.
    // GOGC: a server takes a third less processor time for 100 MiB more, and many start at once.
    const env = { GOGC: '400', ...process.env, KUBEBOX_DIE_WITH_PARENT: '1' };
    const child = spawn(this.#kubebox, [...args], { stdio: ['ignore', log, log], cwd: this.#dir, env });
    closeSync(log);
    // Without a listener it would end this process, which for a pooled server is the whole run.
    child.on('error', (error) => appendFileSync(this.logFile(component), `cannot be started: ${error.message}\n`));
    this.#children.set(component, child);
  }

  isRunning(component: Component): boolean {
    const child = this.#children.get(component);
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  async end(component: Component, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#children.get(component);
    if (!child || !this.isRunning(component)) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    // A graceful end of the API server waits for its watches; tests don't.
    const impatience = setTimeout(() => child.kill('SIGKILL'), 2_000);
    await exited;
    clearTimeout(impatience);
  }

  signal(component: Component, signal: 'SIGSTOP' | 'SIGCONT'): void {
    if (this.isRunning(component)) this.#children.get(component)?.kill(signal);
  }

  async whyDead(component: Component): Promise<string> {
    const log = await readFile(this.logFile(component), 'utf8').catch(() => '');
    return `${component} ended: ${log.trim().split('\n').slice(-8).join('\n')}`;
  }
}

async function startOnce(options: ApiServerOptions, kubebox: string): Promise<TestApiServer> {
  const dir = options.dir ?? (await mkdtemp(path.join(os.tmpdir(), 'isthmus-api-')));
  await mkdir(path.join(dir, 'logs'), { recursive: true });
  const plane: ControlPlane = {
    name: 'test',
    dir,
    address: '127.0.0.1',
    port: await freePort(),
    etcdUrl: `unix://${path.join(dir, 'etcd.sock')}`,
    serviceCidr: '10.96.0.0/16',
    serviceIp: '10.96.0.1',
    adminToken: randomBytes(24).toString('hex'),
  };
  const { ca, admin, kubeconfig } = await writeCredentials(plane);
  const access: Access = { url: apiServerUrl(plane), ca: ca.cert, cert: admin.cert, key: admin.key };
  const processes = new Processes(dir, kubebox);

  const start = async (): Promise<void> => {
    processes.start('etcd', etcdArgs(plane));
    // Advertising a loopback address is refused, and no test needs a working Service `kubernetes`.
    const own = ['--bind-address=127.0.0.1', '--advertise-address=192.0.2.1', '--shutdown-delay-duration=0s'];
    processes.start('kube-apiserver', apiServerArgs(plane, [...own, ...(options.flags ?? [])]));
    const died = (['etcd', 'kube-apiserver'] as const).find((component) => !processes.isRunning(component));
    if (died) throw new AppError('command_failed', await processes.whyDead(died));
    try {
      await waitUntilReady(access, 180_000, () =>
        processes.isRunning('kube-apiserver') && processes.isRunning('etcd') ? undefined : 'a component ended',
      );
    } catch (cause) {
      const dead = processes.isRunning('etcd') ? 'kube-apiserver' : 'etcd';
      throw new AppError('command_failed', await processes.whyDead(dead), { cause });
    }
    if (options.controllerManager) await startControllerManager();
  };
  const startControllerManager = async (flags: readonly string[] = []): Promise<void> =>
    processes.start('kube-controller-manager', controllerManagerArgs(plane, flags));
  const resume = (): void => {
    for (const component of ['etcd', 'kube-apiserver'] as const) processes.signal(component, 'SIGCONT');
  };
  const stop = async (): Promise<void> => {
    resume();
    await processes.end('kube-controller-manager', 'SIGKILL');
    await processes.end('kube-apiserver', 'SIGKILL');
    await processes.end('etcd', 'SIGTERM');
    await keepUsedRights(dir);
    if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: access.url,
    ca: ca.cert,
    adminCert: admin.cert,
    adminKey: admin.key,
    kubeconfig,
    kubeconfigPath: path.join(dir, 'kubeconfig'),
    dir,
    kubebox,
    start,
    stop,
    async restartControllerManager(flags) {
      await processes.end('kube-controller-manager', 'SIGKILL');
      await startControllerManager(flags);
    },
    kill: () => processes.end('kube-apiserver', 'SIGKILL'),
    async pause() {
      await processes.end('kube-controller-manager', 'SIGKILL');
      for (const component of ['kube-apiserver', 'etcd'] as const) processes.signal(component, 'SIGSTOP');
    },
    resume,
  };
}

/** Starts an empty cluster without nodes. The first call on a machine builds the components, which takes minutes. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<TestApiServer> {
  const kubebox = await buildKubebox({ log: (line) => console.error(line) });
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(options, kubebox);
    } catch (error) {
      // Another process took the port between the choice and the bind.
      if (attempt < 3 && error instanceof Error && error.message.includes('address already in use')) continue;
      throw error;
    }
  }
}
