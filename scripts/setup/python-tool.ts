/** Programs from PyPI, each with its packages in a folder of its own in the cache; Python itself is Debian's. */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { ensureDebianPackages } from './debian-packages.ts';
import { withFileLock } from './file-lock.ts';
import { type RunOptions, runCommand } from './run-command.ts';

export interface PythonTool {
  /** Rejects with what it printed, or with why it could not run. */
  run(args: readonly string[], options?: RunOptions): Promise<string>;
  /** For callers that start it themselves. */
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

interface Program {
  readonly name: string;
  readonly version: string;
  /** In its `bin` folder. */
  readonly command: string;
}

/** AWS's linter of CloudFormation templates. It brings its schemas along and makes no requests. */
export const cfnLint: Program = { name: 'cfn-lint', version: '1.58.0', command: 'cfn-lint' };
/** Generates requests from an OpenAPI document and holds the answers against it. */
export const schemathesis: Program = { name: 'schemathesis', version: '4.32.5', command: 'schemathesis' };
/** Writes a Python package that sends the requests of an OpenAPI document. */
export const openApiPythonClient: Program = {
  name: 'openapi-python-client',
  version: '0.29.1',
  command: 'openapi-python-client',
};

const installMs = 600_000;

/** Does nothing when it is there. */
export async function ensurePythonTool(
  program: Program,
  cache: string,
  log: (line: string) => void,
): Promise<PythonTool> {
  const { name, version, command } = program;
  const home = path.join(cache, name, version);
  if (!existsSync(home)) {
    await withFileLock(path.join(cache, 'locks', name), async () => {
      if (existsSync(home)) return;
      log(`installing ${name} ${version} into the cache`);
      await install(program, home, cache, log);
    });
  }
  const [file, env] = [path.join(home, 'bin', command), { PYTHONPATH: home }];
  return {
    run: (args, options = {}) =>
      runCommand('python3', [file, ...args], { ...options, env: { ...options.env, ...env } }),
    program: file,
    env,
  };
}

async function install(
  { name, version }: Program,
  home: string,
  cache: string,
  log: (line: string) => void,
): Promise<void> {
  const partial = `${home}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  await ensureDebianPackages([{ name: 'python3-pip', proof: 'pip3' }], cache, log);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', partial];
  try {
    await runCommand('python3', [...pip, `${name}==${version}`], { timeoutMs: installMs });
  } catch (cause) {
    const advice = `cannot install ${name} ${version} with \`python3 -m pip\`: install python3-pip`;
    throw new AppError('host_unsupported', advice, { cause });
  }
  await rename(partial, home);
}
