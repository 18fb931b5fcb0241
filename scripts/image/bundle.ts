/** Bundles the agent into few minified modules: what is imported lazily stays in files of its own, so idle memory stays small. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

export interface BundledFile {
  readonly name: string;
  readonly content: Buffer;
}

interface Entry {
  readonly name: string;
  readonly source: string;
  readonly splitting: boolean;
  /** A package that it never loads, although a module names it. */
  readonly without?: string;
}

/** The controllers in `main.mjs` and what it imports lazily; the node process, the test pods and those that copy volumes, and the checks before an installation, in one file each, with nothing they do not use. */
const entries = [
  { name: 'main', source: 'agent/main.ts', splitting: true },
  { name: 'fabric', source: 'agent/network/node/main.ts', splitting: false },
  { name: 'probe', source: 'agent/network/probe/main.ts', splitting: false },
  { name: 'mover', source: 'agent/storage/mover/main.ts', splitting: false },
  // Its kubeconfig is its own: the library that reads those with programs and files would be 3 MB for nothing.
  { name: 'check', source: 'cli/preflight-hook.ts', splitting: false, without: '@kubernetes/client-node' },
] as const satisfies readonly Entry[];

export interface Bundle {
  readonly files: readonly BundledFile[];
  /** Packages from npm with a source in it, sorted by name. */
  readonly packages: readonly BundledPackage[];
}

export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license?: string;
}

/** The same sources give the same bytes. `version` is what the agent reports. */
export async function bundleAgent(root: string, version: string): Promise<Bundle> {
  const outdir = path.join(root, '.build', `agent-${process.pid}`);
  const sources: string[] = [];
  for (const entry of entries) sources.push(...(await bundleEntry(root, version, outdir, entry)));
  const files = readdirSync(outdir)
    .sort()
    .map((name) => ({ name, content: readFileSync(path.join(outdir, name)) }));
  rmSync(outdir, { recursive: true, force: true });
  return { files, packages: packagesOf(root, sources) };
}

/** By the paths of their sources, `node_modules/NAME/…`, of which the last one counts. */
export function packagesOf(root: string, sources: readonly string[]): readonly BundledPackage[] {
  const folders = sources.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  const found = [...new Set(folders)].map((folder): BundledPackage => {
    const manifest = JSON.parse(readFileSync(path.join(root, folder, 'package.json'), 'utf8')) as BundledPackage;
    const { name, version, license } = manifest;
    return { name, version, ...(typeof license === 'string' && { license }) };
  });
  const byName = new Map(found.map((each) => [`${each.name}@${each.version}`, each]));
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}

/** Returns the paths of the sources that went in. */
async function bundleEntry(
  root: string,
  version: string,
  outdir: string,
  { name, source, splitting, without }: Entry,
): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { [name]: source },
    outdir,
    bundle: true,
    ...(without !== undefined && { external: [without] }),
    splitting,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    outExtension: { '.js': '.mjs' },
    minify: true,
    legalComments: 'none',
    mainFields: ['module', 'main'],
    logLevel: 'warning',
    metafile: true,
    define: { 'process.env.ISTHMUS_VERSION': JSON.stringify(version) },
    // CommonJS packages inside an ES module bundle still ask for `require`; the name is unlike anything a minifier makes.
    banner: {
      js: "import{createRequire as isthmusCreateRequire}from'node:module';const require=isthmusCreateRequire(import.meta.url);",
    },
  });
  return Object.keys(metafile.inputs);
}

/** Sources of the node process, for the test that keeps it small. */
export async function fabricSources(root: string): Promise<readonly string[]> {
  const outdir = path.join(root, '.build', `fabric-${process.pid}`);
  const sources = await bundleEntry(root, '0.0.0', outdir, entries[1]);
  rmSync(outdir, { recursive: true, force: true });
  return sources;
}
