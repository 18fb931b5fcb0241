// Runs one TypeScript entry point of this repository: bundles it with esbuild into .build/run and hands it the remaining arguments.
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const [entry, ...args] = process.argv.slice(2);
if (!entry) {
  console.error('usage: node scripts/run.mjs ENTRY.ts [ARG ...]');
  process.exit(2);
}
const out = path.join(root, '.build', 'run', `${entry.replaceAll(/[^a-z0-9]+/gi, '-')}-${process.pid}.mjs`);
mkdirSync(path.dirname(out), { recursive: true });
await build({
  absWorkingDir: root,
  entryPoints: [entry],
  outfile: out,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  sourcemap: 'inline',
  logLevel: 'warning',
  define: { 'process.env.ISTHMUS_ROOT': JSON.stringify(root) },
});
process.on('exit', () => rmSync(out, { force: true }));
process.setSourceMapsEnabled(true);
process.argv = [process.argv[0], path.join(root, entry), ...args];
await import(pathToFileURL(out).href);
