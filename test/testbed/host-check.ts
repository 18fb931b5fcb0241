/** Says early and clearly what keeps the test bed from running on this machine. */
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { runCommand } from '#scripts/setup/run-command.ts';
import { AppError } from '#shared/errors/app-error.ts';

export interface HostFacts {
  readonly platform: string;
  readonly arch: string;
  readonly uid: number | undefined;
  readonly hasTun: boolean;
  readonly canWriteCgroups: boolean;
}

const canWrite = (file: string): boolean => {
  try {
    accessSync(file, constants.W_OK);
    return true;
  } catch {
    return false;
  }
};

const readHostFacts = (): HostFacts => ({
  platform: process.platform,
  arch: os.arch(),
  uid: process.getuid?.(),
  hasTun: existsSync('/dev/net/tun'),
  canWriteCgroups: canWrite('/sys/fs/cgroup'),
});

/** The first thing that is missing, in words that say what to do; undefined when all is well. */
export function hostObstacle(facts: HostFacts): string | undefined {
  if (facts.platform !== 'linux')
    return `the test bed needs Linux, this is ${facts.platform}: run it in a Linux virtual machine`;
  if (facts.arch !== 'x64') return `the test bed builds images for x64 only, this machine is ${facts.arch}`;
  if (facts.uid !== 0)
    return `the test bed makes network namespaces, mounts and cgroups and needs root, you are user ${facts.uid}: use sudo`;
  if (!facts.canWriteCgroups)
    return '/sys/fs/cgroup is not writable: in a container, run it privileged with its own cgroup namespace';
  if (!facts.hasTun) return '/dev/net/tun is missing: load the module with `modprobe tun`';
  return undefined;
}

/** Throws `host_unsupported` when this machine cannot run the test bed. Missing packages are another step's business. */
export function checkHost(facts: HostFacts = readHostFacts()): void {
  const obstacle = hostObstacle(facts);
  if (obstacle !== undefined) throw new AppError('host_unsupported', obstacle, { detail: { ...facts } });
}

/** Features that are modules on some kernels and would otherwise be missed in a confusing place. */
const kernelFeatures: readonly { readonly proof: string; readonly module: string }[] = [
  { proof: '/proc/sys/net/bridge/bridge-nf-call-iptables', module: 'br_netfilter' },
];

const ofStorage = { proof: '/dev/loop-control', module: 'loop' } as const;

export async function ensureKernelModules(storage: boolean): Promise<void> {
  for (const { proof, module } of storage ? [...kernelFeatures, ofStorage] : kernelFeatures) {
    if (existsSync(proof)) continue;
    await runCommand('modprobe', [module]).catch((cause: unknown) => {
      throw new AppError('host_unsupported', `this kernel lacks ${module}: load it with \`modprobe ${module}\``, {
        cause,
      });
    });
  }
}

/** Kubelets, containerds and tunnels of several clusters, all of one user, watch files: the usual 128 are soon gone. */
const watchers = { file: '/proc/sys/fs/inotify/max_user_instances', least: 1024 } as const;

export function ensureWatchers(): void {
  if (Number(readFileSync(watchers.file, 'utf8')) >= watchers.least) return;
  try {
    writeFileSync(watchers.file, String(watchers.least));
  } catch (cause) {
    const todo = `set fs.inotify.max_user_instances to ${watchers.least} on the machine itself`;
    throw new AppError('host_unsupported', `this machine lets a user watch too few files: ${todo}`, { cause });
  }
}
