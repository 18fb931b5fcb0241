/** Builds Go programs into the cache, once per content: the key is the hash of the sources, the flags and the Go version. */
import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { type BuildPart, systemPorts, watchBuild } from './build-progress.ts';
import { cacheDir } from './cache-dir.ts';
import { withFileLock } from './file-lock.ts';
import { findGo, type GoToolchain } from './go-toolchain.ts';
import { runCommand } from './run-command.ts';

export interface BuildOptions {
  readonly cache?: string;
  readonly log?: (line: string) => void;
  /** Which part it is of a greater whole. */
  readonly place?: BuildPart['place'];
}

export interface GoProgram {
  /** Of the binary. */
  readonly name: string;
  /**
   * A folder that holds a Go module, with the package of it or of a module that it requires unless it is the folder's own, and with the folder inside
   * whose go.mod and go.sum count in place of its own, if any; or `package@version` to install.
   */
  readonly source:
    | { readonly folder: string; readonly package?: string; readonly requires?: string }
    | { readonly module: string };
  readonly flags: readonly string[];
  /** True: with what is written in C, by this machine's compiler. Go alone unless told. */
  readonly cgo?: boolean;
  /** This machine's unless told. */
  readonly architecture?: 'amd64' | 'arm64';
  /** In words. */
  readonly about: string;
  /** On two cores, with nothing in Go's own caches. */
  readonly expectedSeconds: number;
  readonly minimumGo: string;
}

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

async function sourceKey({ source, flags, cgo, architecture }: GoProgram, go: GoToolchain): Promise<string> {
  const named = 'folder' in source ? { ...source, folder: path.basename(source.folder) } : source;
  const inputs = [
    go.version,
    flags,
    named,
    ...(architecture === undefined ? [] : [architecture]),
    ...(cgo ? ['C'] : []),
  ];
  const hash = createHash('sha256').update(JSON.stringify(inputs));
  if ('folder' in source) {
    const { folder, requires } = source;
    // Packages in folders inside count, too; a go.mod there is another module's, or one of `requires`.
    const own = (await readdir(folder, { recursive: true }))
      .filter((name) => /\.go$|^go\.(mod|sum)$/.test(name))
      .sort();
    const others = requires === undefined ? [] : ['go.mod', 'go.sum'].map((name) => path.join(requires, name));
    for (const file of [...own, ...others]) hash.update(`\0${file}\0`).update(await readFile(path.join(folder, file)));
  }
  return hash.digest('hex').slice(0, 16);
}

/** `compiled` is called with the number of packages that are. */
async function compile(
  { name, source, flags, cgo = false, architecture }: GoProgram,
  go: GoToolchain,
  into: string,
  compiled: (packages: number) => void,
): Promise<void> {
  // With -v, each package is a line.
  const onStderr = (text: string): void => compiled(text.split('\n').length - 1);
  const env = {
    CGO_ENABLED: cgo ? '1' : '0',
    GOTOOLCHAIN: 'local',
    GOFLAGS: '-buildvcs=false',
    ...(architecture === undefined ? { GOBIN: into } : await crossEnvironment(go, architecture, into)),
  };
  const binary = path.join(into, name);
  if ('folder' in source) {
    const modules = source.requires === undefined ? [] : ['-modfile', path.join(source.requires, 'go.mod')];
    await runCommand(go.command, ['build', '-v', ...modules, ...flags, '-o', binary, source.package ?? '.'], {
      cwd: source.folder,
      env,
      onStderr,
    });
  } else {
    await runCommand(go.command, ['install', '-v', ...flags, source.module], { env, cwd: into, onStderr });
    const folder = architecture === undefined ? into : path.join(into, 'bin', `linux_${architecture}`);
    const installed = path.join(folder, path.basename(source.module.replace(/@.*$/, '')));
    if (installed !== binary) await rename(installed, binary);
  }
}

/** `go install` refuses GOBIN when it compiles for another architecture, and puts the binary into GOPATH/bin/linux_ARCHITECTURE. */
async function crossEnvironment(
  go: GoToolchain,
  architecture: string,
  into: string,
): Promise<Readonly<Record<string, string>>> {
  const modules = (await runCommand(go.command, ['env', 'GOMODCACHE'])).trim();
  return { GOOS: 'linux', GOARCH: architecture, GOBIN: '', GOPATH: into, GOMODCACHE: modules };
}

/** The path of the built binary; builds it when the cache lacks it. Safe to call from several processes at once. */
export async function buildGoProgram(program: GoProgram, options: BuildOptions = {}): Promise<string> {
  const cache = options.cache ?? cacheDir();
  const log = options.log ?? (() => undefined);
  const go = await findGo(cache, program.minimumGo, log);
  const folder = path.join(cache, 'bin', `${program.name}-${await sourceKey(program, go)}`);
  const binary = path.join(folder, program.name);
  if (await exists(binary)) return binary;
  const { name, about, expectedSeconds } = program;
  const part = { what: `${name} (${about})`, expectedSeconds, ...(options.place && { place: options.place }) };
  const build = async (compiled: (packages: number) => void): Promise<string> => {
    if (await exists(binary)) return binary;
    const partial = `${folder}.partial`;
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { recursive: true });
    await compile(program, go, partial, compiled);
    await rename(partial, folder);
    return binary;
  };
  // Another process that builds the same is waited for.
  const locked = (compiled: (packages: number) => void) =>
    withFileLock(path.join(cache, 'bin', `${name}.lock`), () => build(compiled));
  return options.log === undefined ? await locked(() => undefined) : await watchBuild(part, systemPorts(log), locked);
}

/** The modules that a binary was compiled from, its own included, sorted by path. */
export async function modulesIn(
  binary: string,
  minimumGo: string,
  { cache = cacheDir(), log = () => undefined }: BuildOptions,
): Promise<readonly { readonly path: string; readonly version: string }[]> {
  const go = await findGo(cache, minimumGo, log);
  const text = await runCommand(go.command, ['version', '-m', binary]);
  return [...text.matchAll(/^\t(?:mod|dep)\t(\S+)\t(\S+)/gm)]
    .map(([, path = '', version = '']) => ({ path, version }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Where the sources of a module are that the module in `folder` requires. */
export async function sourcesOf(
  module: string,
  folder: string,
  minimumGo: string,
  { cache = cacheDir(), log = () => undefined }: BuildOptions,
): Promise<string> {
  const go = await findGo(cache, minimumGo, log);
  await runCommand(go.command, ['mod', 'download', module], { cwd: folder });
  return (await runCommand(go.command, ['list', '-m', '-f', '{{.Dir}}', module], { cwd: folder })).trim();
}

/** Builds one after the other, each said to be which part of how many. Resolves with their binaries under the names of the builders. */
export async function buildInParts<K extends string>(
  builders: Readonly<Record<K, (options: BuildOptions) => Promise<string>>>,
  options: BuildOptions,
): Promise<Record<K, string>> {
  const names = Object.keys(builders) as K[];
  const built: Partial<Record<K, string>> = {};
  for (const [index, name] of names.entries()) {
    built[name] = await builders[name]({ ...options, place: { number: index + 1, of: names.length } });
  }
  return built as Record<K, string>;
}
