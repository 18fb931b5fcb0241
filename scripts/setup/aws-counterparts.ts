/** What stands in for AWS on this machine, in the cache: DynamoDB Local, EventBridge's matcher, moto, and Lambda's runtime interface client. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ensureDebianPackages } from './debian-packages.ts';
import { withFileLock } from './file-lock.ts';
import { runCommand } from './run-command.ts';

export interface SetUp {
  readonly root: string;
  readonly cache: string;
  readonly log: (line: string) => void;
}

/** Everything it needs, by absolute path. */
export interface AwsCounterparts {
  readonly java: string;
  /** Class path with DynamoDB Local, event-ruler and the driver `Matcher`. */
  readonly jars: string;
  /** Native parts of DynamoDB Local. */
  readonly nativeLibraries: string;
  /** moto's Python packages: `PYTHONPATH` of `python3 -m moto.server`. */
  readonly motoPackages: string;
  /** AWS's runtime interface client: a module that Node 24 runs with the handler's name as argument. */
  readonly runtimeClient: string;
}

const packages = [
  { name: 'openjdk-17-jre-headless', proof: 'java' },
  { name: 'maven', proof: 'mvn' },
  { name: 'openjdk-17-jdk-headless', proof: 'javac' },
  { name: 'python3-pip', proof: 'pip3' },
] as const;

const compilers = [
  { name: 'cmake', proof: 'cmake' },
  { name: 'make', proof: 'make' },
  { name: 'g++', proof: 'g++' },
] as const;

const installMs = 900_000;

/** Does nothing on a machine that has everything; what is installed is named by the content of the files that ask for it. */
export async function ensureAwsCounterparts({ root, cache, log }: SetUp): Promise<AwsCounterparts> {
  const source = path.join(root, 'scripts', 'setup', 'aws');
  const jars = await once(
    { cache, log },
    'aws-jars',
    [path.join(source, 'pom.xml'), path.join(source, 'Matcher.java')],
    async (folder) => {
      await ensureDebianPackages(packages, cache, log);
      await cp(source, folder, { recursive: true });
      const copy = ['-q', '-B', 'dependency:copy-dependencies', '-DoutputDirectory=lib'];
      await runCommand('mvn', copy, { cwd: folder, timeoutMs: installMs });
      await runCommand('javac', ['-cp', 'lib/*', '-d', 'classes', 'Matcher.java'], { cwd: folder });
    },
  );
  const motoPackages = await once(
    { cache, log },
    'moto-packages',
    [path.join(source, 'requirements.txt')],
    async (folder) => {
      await ensureDebianPackages(packages, cache, log);
      const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', folder, '-r'];
      const requirements = path.join(source, 'requirements.txt');
      await runCommand('python3', [...pip, requirements], { timeoutMs: installMs });
    },
  );
  const ric = path.join(source, 'ric');
  const runtime = await once({ cache, log }, 'lambda-ric', [path.join(ric, 'package-lock.json')], async (folder) => {
    await ensureDebianPackages(compilers, cache, log);
    await cp(ric, folder, { recursive: true });
    // Without `--foreground-scripts` the output of a failing build is lost.
    const ci = ['ci', '--no-audit', '--no-fund', '--foreground-scripts'];
    await runCommand('npm', ci, { cwd: folder, timeoutMs: installMs });
  });
  return {
    java: 'java',
    jars: [path.join(jars, 'lib', '*'), path.join(jars, 'classes')].join(':'),
    nativeLibraries: path.join(jars, 'lib'),
    motoPackages,
    runtimeClient: path.join(runtime, 'node_modules', 'aws-lambda-ric', 'index.mjs'),
  };
}

/** Fills a folder of the cache once: it is filled where it stays, because some tools note where they are, and marked when complete. */
async function once(
  { cache, log }: Pick<SetUp, 'cache' | 'log'>,
  name: string,
  inputs: readonly string[],
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  const hash = createHash('sha256');
  for (const input of inputs) hash.update(await readFile(input));
  const folder = path.join(cache, name, hash.digest('hex').slice(0, 16));
  const done = `${folder}.done`;
  if (existsSync(done)) return folder;
  return withFileLock(path.join(cache, 'locks', name), async () => {
    if (existsSync(done)) return folder;
    log(`installing ${name} into the cache`);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await fill(folder);
    await writeFile(`${done}.part`, '');
    await rename(`${done}.part`, done);
    return folder;
  });
}
