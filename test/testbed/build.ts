/** Builds the test bed's Go programs once per content: the key is the hash of the sources, the flags and the Go version. */
import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { withFileLock } from '#scripts/setup/file-lock.ts';
import { findGo, type GoToolchain } from '#scripts/setup/go-toolchain.ts';
import { runCommand } from '#scripts/setup/run-command.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { repositoryRoot } from './repository-root.ts';

export interface BuildOptions {
  readonly cache?: string;
  readonly log?: (line: string) => void;
}

interface Program {
  readonly name: string;
  /** A folder of this repository that holds a Go module, or `module@version` to install. */
  readonly source: { readonly folder: string } | { readonly module: string };
  readonly flags: readonly string[];
  readonly about: string;
}

const testbedFolder = path.join(repositoryRoot, 'test', 'testbed');
const coreDnsModule = 'github.com/coredns/coredns@v1.12.4';
const metricsServerModule = 'sigs.k8s.io/metrics-server/cmd/metrics-server@v0.9.0';
const kwokModule = 'sigs.k8s.io/kwok/cmd/kwok@v0.7.0';

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/** The version of `module` that a go.mod requires. */
export function requiredVersion(goMod: string, module: string): string {
  const found = new RegExp(`^\\s*(?:require )?${module.replaceAll('.', '\\.')} (v[^\\s]+)`, 'm').exec(goMod)?.[1];
  if (!found) throw new AppError('invalid_input', `go.mod does not require ${module}`);
  return found;
}

async function sourceKey(program: Program, go: GoToolchain): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify([go.version, program.flags, program.source]));
  if ('folder' in program.source) {
    const folder = path.join(testbedFolder, program.source.folder);
    for (const file of (await readdir(folder)).filter((name) => /\.go$|^go\.(mod|sum)$/.test(name)).sort()) {
      hash.update(`\0${file}\0`).update(await readFile(path.join(folder, file)));
    }
  }
  return hash.digest('hex').slice(0, 16);
}

async function compile(program: Program, go: GoToolchain, into: string): Promise<void> {
  const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false', GOBIN: into };
  if ('folder' in program.source) {
    const cwd = path.join(testbedFolder, program.source.folder);
    await runCommand(go.command, ['build', ...program.flags, '-o', path.join(into, program.name), '.'], { cwd, env });
  } else {
    await runCommand(go.command, ['install', ...program.flags, program.source.module], { env, cwd: into });
  }
}

/** The path of the built binary; builds it when the cache lacks it. Safe to call from several processes at once. */
async function buildProgram(program: Program, minimumGo: string, options: BuildOptions): Promise<string> {
  const cache = options.cache ?? cacheDir();
  const log = options.log ?? (() => undefined);
  const go = await findGo(cache, minimumGo, log);
  const folder = path.join(cache, 'bin', `${program.name}-${await sourceKey(program, go)}`);
  const binary = path.join(folder, program.name);
  if (await exists(binary)) return binary;
  return await withFileLock(path.join(cache, 'bin', `${program.name}.lock`), async () => {
    if (await exists(binary)) return binary;
    log(`building ${program.name} (${program.about})`);
    const partial = `${folder}.partial`;
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { recursive: true });
    await compile(program, go, partial);
    await rename(partial, folder);
    return binary;
  });
}

const readGoMod = (folder: string): Promise<string> => readFile(path.join(testbedFolder, folder, 'go.mod'), 'utf8');
const goDirective = (goMod: string): string => /^go (\S+)/m.exec(goMod)?.[1] ?? '1.24';

/** Every component of Kubernetes, etcd and kubectl in one binary: `kubebox kube-apiserver …`, `kubebox kubectl …`. */
export async function buildKubebox(options: BuildOptions = {}): Promise<string> {
  const goMod = await readGoMod('kubebox');
  const version = requiredVersion(goMod, 'k8s.io/kubernetes');
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  const stamps = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' };
  const stampFlags = Object.entries(stamps).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  const flags = ['-tags', 'providerless,dockerless', '-ldflags', ['-s', '-w', ...stampFlags].join(' ')];
  const about = 'Kubernetes and etcd; minutes the first time';
  return await buildProgram(
    { name: 'kubebox', source: { folder: 'kubebox' }, flags, about },
    goDirective(goMod),
    options,
  );
}

export async function buildCoreDns(options: BuildOptions = {}): Promise<string> {
  const flags = ['-ldflags', '-s -w'];
  const program: Program = {
    name: 'coredns',
    source: { module: coreDnsModule },
    flags,
    about: 'a minute or two the first time',
  };
  return await buildProgram(program, goDirective(await readGoMod('kubebox')), options);
}

/** Plays kubelets of nodes that have no machine; for measurements. */
export async function buildKwok(options: BuildOptions = {}): Promise<string> {
  const flags = ['-ldflags', '-s -w'];
  const program: Program = { name: 'kwok', source: { module: kwokModule }, flags, about: 'a minute the first time' };
  return await buildProgram(program, goDirective(await readGoMod('kubebox')), options);
}

/** Not part of a bed; for tests of what it measures. */
export async function buildMetricsServer(options: BuildOptions = {}): Promise<string> {
  const program: Program = {
    name: 'metrics-server',
    source: { module: metricsServerModule },
    flags: ['-ldflags', '-s -w'],
    about: 'a minute or two the first time',
  };
  return await buildProgram(program, goDirective(await readGoMod('kubebox')), options);
}

/** The program in the test workload image; its sub-command `pause` is the sandbox container. */
export async function buildWorkload(options: BuildOptions = {}): Promise<string> {
  const flags = ['-trimpath', '-ldflags', '-s -w'];
  const program: Program = { name: 'workload', source: { folder: 'workload' }, flags, about: 'seconds' };
  return await buildProgram(program, goDirective(await readGoMod('workload')), options);
}

/** Process 1 of every node. */
export async function buildNodebox(options: BuildOptions = {}): Promise<string> {
  const flags = ['-trimpath', '-ldflags', '-s -w'];
  const program: Program = { name: 'nodebox', source: { folder: 'nodebox' }, flags, about: 'seconds' };
  return await buildProgram(program, goDirective(await readGoMod('nodebox')), options);
}
