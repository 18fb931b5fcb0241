/** AWS's linter of CloudFormation templates, with its Python packages in the cache. It brings its schemas along and asks nobody. */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { ensureDebianPackages } from './debian-packages.ts';
import { withFileLock } from './file-lock.ts';
import { runCommand } from './run-command.ts';

const version = '1.58.0';
const installMs = 600_000;

export interface CfnLint {
  /** Rejects with what it found, or with why it could not look. */
  run(args: readonly string[]): Promise<string>;
}

/** Does nothing when it is there. */
export async function ensureCfnLint(cache: string, log: (line: string) => void): Promise<CfnLint> {
  const home = path.join(cache, 'cfn-lint', version);
  if (!existsSync(home)) {
    await withFileLock(path.join(cache, 'locks', 'cfn-lint'), async () => {
      if (existsSync(home)) return;
      log(`installing cfn-lint ${version} into the cache`);
      await install(home, cache, log);
    });
  }
  return {
    run: (args) => runCommand('python3', [path.join(home, 'bin', 'cfn-lint'), ...args], { env: { PYTHONPATH: home } }),
  };
}

async function install(home: string, cache: string, log: (line: string) => void): Promise<void> {
  const partial = `${home}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  await ensureDebianPackages([{ name: 'python3-pip', proof: 'pip3' }], cache, log);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', partial];
  try {
    await runCommand('python3', [...pip, `cfn-lint==${version}`], { timeoutMs: installMs });
  } catch (cause) {
    throw new AppError(
      'host_unsupported',
      `cannot install cfn-lint ${version} with \`python3 -m pip\`: install python3-pip`,
      {
        cause,
      },
    );
  }
  await rename(partial, home);
}
