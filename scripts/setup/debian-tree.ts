/** Debian packages of one architecture unpacked into the cache, with all that they depend on, by this machine's apt and without touching its dpkg. */
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { withFileLock } from './file-lock.ts';
import { runCommand } from './run-command.ts';

export interface DebianTreeOptions {
  /** As Debian calls it. */
  readonly architecture: 'amd64' | 'arm64';
  readonly packages: readonly string[];
  readonly cache: string;
  readonly log: (line: string) => void;
}

export interface DebianPackageFiles {
  readonly name: string;
  readonly version: string;
  /** Its files, as below `/`. */
  readonly folder: string;
}

export interface DebianTree {
  readonly packages: readonly DebianPackageFiles[];
}

export interface DebianFile {
  /** Where its bytes are on this machine. */
  readonly file: string;
  readonly from: DebianPackageFiles;
}

const downloadMs = 300_000;

/** What is in the cache stays: remove `debian-ARCHITECTURE` there to take newer versions. */
export async function ensureDebianTree(options: DebianTreeOptions): Promise<DebianTree> {
  const { architecture, packages, cache, log } = options;
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  const suite = /^VERSION_CODENAME=(\S+)$/m.exec(release)?.[1] ?? 'unknown';
  const key = createHash('sha256')
    .update(JSON.stringify([suite, packages]))
    .digest('hex')
    .slice(0, 16);
  const folder = path.join(cache, `debian-${architecture}`, key);
  if (!existsSync(folder)) {
    await withFileLock(path.join(cache, 'locks', `debian-${architecture}`), async () => {
      if (existsSync(folder)) return;
      log(`fetching Debian packages for ${architecture} into the cache`);
      const partial = `${folder}.partial`;
      await rm(partial, { recursive: true, force: true });
      await mkdir(partial, { recursive: true });
      await fill(partial, architecture, packages);
      await rename(partial, folder);
    });
  }
  const unpacked = readdirSync(folder)
    .sort()
    .map((entry) => packageOf(folder, entry));
  return { packages: unpacked };
}

/** Archives are called NAME_VERSION_ARCHITECTURE.deb, with the colon of an epoch as %3a. */
function packageOf(folder: string, entry: string): DebianPackageFiles {
  const [name = '', version = ''] = entry.split('_');
  return { name, version: decodeURIComponent(version), folder: path.join(folder, entry) };
}

async function fill(into: string, architecture: string, packages: readonly string[]): Promise<void> {
  const state = `${into}.apt`;
  await rm(state, { recursive: true, force: true });
  for (const part of ['lists/partial', 'cache/archives/partial'])
    await mkdir(path.join(state, part), { recursive: true });
  // An empty list of installed packages: what they depend on comes along.
  await writeFile(path.join(state, 'status'), '');
  const settings = {
    'APT::Architecture': architecture,
    'APT::Architectures::': architecture,
    'APT::Install-Recommends': 'false',
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Debug::NoLocking': 'true',
    'Dir::State::lists': path.join(state, 'lists'),
    'Dir::State::status': path.join(state, 'status'),
    'Dir::State::extended_states': path.join(state, 'extended_states'),
    'Dir::Cache': path.join(state, 'cache'),
  };
  const apt = async (...args: readonly string[]): Promise<void> => {
    const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    const how = { timeoutMs: downloadMs, env: { DEBIAN_FRONTEND: 'noninteractive' } };
    try {
      await runCommand('apt-get', ['-qq', ...args, ...options], how);
    } catch (cause) {
      throw new AppError(
        'host_unsupported',
        `cannot fetch Debian packages for ${architecture}; images are built on Debian, with apt that reaches its package source: ${(cause as Error).message}`,
        { cause },
      );
    }
  };
  await apt('update');
  await apt('--yes', '--download-only', 'install', ...packages);
  const archives = path.join(state, 'cache', 'archives');
  for (const archive of readdirSync(archives).filter((name) => name.endsWith('.deb'))) {
    const target = path.join(into, archive.slice(0, -'.deb'.length));
    await runCommand('dpkg-deb', ['--extract', path.join(archives, archive), target]);
  }
  await rm(state, { recursive: true, force: true });
}

/** Looks a path of the image up in all packages, following links inside of them; undefined when none has it. */
export function findInTree(tree: DebianTree, wanted: string, hops = 0): DebianFile | undefined {
  if (hops > 8) return undefined;
  // Packages of before Debian 13 have their libraries in /lib, newer ones in /usr/lib, to which /lib is a link.
  for (const candidate of [wanted, `/usr${wanted}`]) {
    for (const from of tree.packages) {
      const file = path.join(from.folder, candidate);
      const entry = lstatSync(file, { throwIfNoEntry: false });
      if (entry?.isFile()) return { file, from };
      if (entry?.isSymbolicLink()) {
        const target = path.posix.resolve(path.posix.dirname(candidate), readlinkSync(file));
        const found = findInTree(tree, target, hops + 1);
        if (found !== undefined) return found;
      }
    }
  }
  return undefined;
}
