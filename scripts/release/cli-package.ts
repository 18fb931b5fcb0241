/** The command line as an npm tarball that needs no other package: one bundle, and a small program that starts it. */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import { runCommand } from '#scripts/setup/run-command.ts';

export interface CliPackage {
  readonly tarball: string;
  readonly version: string;
}

/** Node 22 and newer keep the compiled bundle in the temporary folder of the user's machine: a second start takes half as long. */
const starter = `#!/usr/bin/env node
import * as module from 'node:module';
module.enableCompileCache?.();
await import('../lib/cli.mjs');
`;

const settings: BuildOptions = {
  bundle: true,
  write: false,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  minify: true,
  legalComments: 'none',
  mainFields: ['module', 'main'],
  logLevel: 'warning',
  outExtension: { '.js': '.mjs' },
  // Built for one Node; Node 22 and newer have SQLite themselves.
  external: ['better-sqlite3'],
  // CommonJS packages inside an ES module bundle still ask for `require`; the name is unlike anything a minifier makes.
  banner: {
    js: "import{createRequire as isthmusCreateRequire}from'node:module';const require=isthmusCreateRequire(import.meta.url);",
  },
};

interface Module {
  readonly name: string;
  readonly content: Uint8Array;
}

/**
 * The same sources give the same bytes. `whole`: one file; else what few commands need, such as the broker, is in files of its own, which only
 * they load.
 */
export async function bundleCli(root: string, { whole }: { readonly whole: boolean }): Promise<readonly Module[]> {
  const paths = { absWorkingDir: root, entryPoints: { cli: 'cli/main.ts' }, outdir: path.join(root, '.build', 'cli') };
  const { outputFiles = [] } = await build({ ...settings, ...paths, splitting: !whole });
  return outputFiles.map((file) => ({ name: path.basename(file.path), content: file.contents }));
}

/** Writes `into`/isthmus-VERSION.tgz. */
export async function packCli(root: string, into: string): Promise<CliPackage> {
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as Record<string, unknown>;
  const { name, version, description, license, type, engines } = manifest;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-package-'));
  try {
    for (const each of ['bin', 'lib']) mkdirSync(path.join(folder, each));
    const bin = { isthmus: './bin/isthmus.mjs' };
    const own = { name, version, description, license, type, engines, bin };
    writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(own, null, 2)}\n`);
    const modules = await bundleCli(root, { whole: false });
    for (const { name, content } of modules) writeFileSync(path.join(folder, 'lib', name), content);
    writeFileSync(path.join(folder, 'bin', 'isthmus.mjs'), starter, { mode: 0o755 });
    const console = path.join(folder, 'lib', 'console');
    await runCommand(process.execPath, [path.join(root, 'scripts', 'console', 'build.mjs'), '--out', console]);
    for (const file of ['LICENSE', 'README.md']) copyFileSync(path.join(root, file), path.join(folder, file));
    mkdirSync(into, { recursive: true });
    await runCommand('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', into], { cwd: folder });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { tarball: path.join(into, `${String(name)}-${String(version)}.tgz`), version: String(version) };
}
