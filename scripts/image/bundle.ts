/** Bundles the agent into few minified modules: what is imported lazily stays in files of its own, so idle memory stays small. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

export interface BundledFile {
  readonly name: string;
  readonly content: Buffer;
}

/** The same sources give the same bytes. `version` is what the agent reports. */
export async function bundleAgent(root: string, version: string): Promise<readonly BundledFile[]> {
  const outdir = path.join(root, '.build', `agent-${process.pid}`);
  await build({
    absWorkingDir: root,
    entryPoints: { main: 'agent/main.ts' },
    outdir,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    outExtension: { '.js': '.mjs' },
    minify: true,
    legalComments: 'none',
    mainFields: ['module', 'main'],
    logLevel: 'warning',
    define: { 'process.env.ISTHMUS_VERSION': JSON.stringify(version) },
    // CommonJS packages inside an ES module bundle still ask for `require`; the name is unlike anything a minifier makes.
    banner: {
      js: "import{createRequire as isthmusCreateRequire}from'node:module';const require=isthmusCreateRequire(import.meta.url);",
    },
  });
  const files = readdirSync(outdir)
    .sort()
    .map((name) => ({ name, content: readFileSync(path.join(outdir, name)) }));
  rmSync(outdir, { recursive: true, force: true });
  return files;
}
