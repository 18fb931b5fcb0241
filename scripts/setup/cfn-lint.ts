/** AWS's linter of CloudFormation templates, in a Python environment of its own in the cache. It brings its schemas along and asks nobody. */
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { ensureDebianPackages } from './debian-packages.ts';
import { withFileLock } from './file-lock.ts';
import { runCommand } from './run-command.ts';

const version = '1.58.0';
const installMs = 600_000;

/** The program's path. Does nothing when it is there. */
export async function ensureCfnLint(cache: string, log: (line: string) => void): Promise<string> {
  // Environments of Python know their own place: filled where it stays, and marked when complete.
  const home = path.join(cache, 'cfn-lint', version);
  const done = `${home}.done`;
  const program = path.join(home, 'bin', 'cfn-lint');
  if (existsSync(done)) return program;
  return await withFileLock(path.join(cache, 'locks', 'cfn-lint'), async () => {
    if (existsSync(done)) return program;
    log(`installing cfn-lint ${version} into the cache`);
    await ensureDebianPackages([{ name: 'python3-venv', proof: 'python3' }], cache, log);
    await rm(home, { recursive: true, force: true });
    await mkdir(path.dirname(home), { recursive: true });
    try {
      await runCommand('python3', ['-m', 'venv', home]);
      const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `cfn-lint==${version}`];
      await runCommand(path.join(home, 'bin', 'python'), pip, { timeoutMs: installMs });
    } catch (cause) {
      throw new AppError('host_unsupported', `cannot install cfn-lint ${version}: install python3 with venv and pip`, {
        cause,
      });
    }
    await writeFile(done, '');
    return program;
  });
}
