/** Makes sure that programs which come from Debian packages are there, installing what is missing when allowed to. */
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { withFileLock } from './file-lock.ts';
import { runCommand } from './run-command.ts';

/** One file that proves that the package is installed: a program looked for on the path, or an absolute path. */
export interface DebianPackage {
  readonly name: string;
  readonly proof: string;
}

export const testbedPackages: readonly DebianPackage[] = [
  { name: 'containerd', proof: 'containerd' },
  { name: 'runc', proof: 'runc' },
  { name: 'containernetworking-plugins', proof: '/usr/lib/cni/bridge' },
  { name: 'nftables', proof: 'nft' },
  { name: 'iproute2', proof: 'ip' },
  { name: 'conntrack', proof: 'conntrack' },
  { name: 'iptables', proof: 'iptables' },
  { name: 'wireguard-tools', proof: 'wg' },
  { name: 'iputils-ping', proof: 'ping' },
  // volumes of the test bed
  { name: 'e2fsprogs', proof: 'mkfs.ext4' },
  { name: 'xfsprogs', proof: 'mkfs.xfs' },
  // check the completion scripts
  { name: 'zsh', proof: 'zsh' },
  { name: 'fish', proof: 'fish' },
];

/** For tests of the health checks for Argo CD; the demo needs none. */
export const healthCheckPackages: readonly DebianPackage[] = [{ name: 'lua5.1', proof: 'lua5.1' }];

/** For tests of the formula for Homebrew; the demo needs none. */
export const formulaPackages: readonly DebianPackage[] = [{ name: 'ruby', proof: 'ruby' }];

/** For tests of metrics; the demo needs none. */
export const monitoringPackages: readonly DebianPackage[] = [{ name: 'prometheus', proof: 'promtool' }];

/** For tests of the console; the demo needs none. */
export const browserPackages: readonly DebianPackage[] = [
  { name: 'chromium', proof: 'chromium' },
  { name: 'fonts-dejavu-core', proof: '/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf' },
];

const searchPath = (): string[] => [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin'];

const isAccessible = (file: string, mode: number): Promise<boolean> =>
  access(file, mode).then(
    () => true,
    () => false,
  );

async function isInstalled({ proof }: DebianPackage): Promise<boolean> {
  // A font is no program: of an absolute path it is enough that the file is there.
  if (path.isAbsolute(proof)) return isAccessible(proof, constants.R_OK);
  for (const dir of searchPath()) if (await isAccessible(path.join(dir, proof), constants.X_OK)) return true;
  return false;
}

export async function missingPackages(packages: readonly DebianPackage[]): Promise<string[]> {
  const checked = await Promise.all(packages.map(async (wanted) => ((await isInstalled(wanted)) ? [] : [wanted.name])));
  return checked.flat();
}

/** Installs what is missing with apt when this is root on a Debian-like machine; else says what to install. */
export async function ensureDebianPackages(
  packages: readonly DebianPackage[],
  cache: string,
  log: (line: string) => void,
): Promise<void> {
  if ((await missingPackages(packages)).length === 0) return;
  await withFileLock(path.join(cache, 'apt.lock'), async () => {
    const missing = await missingPackages(packages);
    if (missing.length === 0) return;
    const remedy = `install them with: apt-get install ${missing.join(' ')}`;
    if (process.getuid?.() !== 0)
      throw new AppError('host_unsupported', `missing on this machine: ${missing.join(', ')}; ${remedy}`, {
        detail: { missing },
      });
    log(`installing Debian packages: ${missing.join(' ')}`);
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    try {
      await runCommand('apt-get', ['update', '-qq'], { env });
      await runCommand('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], { env });
    } catch (cause) {
      throw new AppError(
        'host_unsupported',
        `missing on this machine: ${missing.join(', ')}, and installing them failed; ${remedy}`,
        {
          detail: { missing },
          cause,
        },
      );
    }
    const left = await missingPackages(packages);
    if (left.length > 0)
      throw new AppError('host_unsupported', `still missing after the installation: ${left.join(', ')}`, {
        detail: { missing: left },
      });
  });
}
