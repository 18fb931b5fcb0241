// Runs one TypeScript entry point of this repository with the remaining arguments: bundled by esbuild into .build/run, under a name that says
// what it was made of, so that it is bundled again only when one of its files changed.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const [entry, ...args] = process.argv.slice(2);
if (!entry) {
  console.error('usage: node scripts/run.mjs ENTRY.ts [ARG ...]');
  process.exit(2);
}
const dir = path.join(root, '.build', 'run');
const name = entry.replaceAll(/[^a-z0-9]+/gi, '-');
const inputsFile = path.join(dir, `${name}.inputs.json`);

/** Of everything that the bundle would be made of; undefined when one of the files is gone. */
function hashOf(files) {
  const hash = createHash('sha256').update(process.version).update(root);
  try {
    for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(path.join(root, file)));
  } catch {
    return undefined;
  }
  return hash.digest('hex').slice(0, 24);
}

const always = ['package.json', 'package-lock.json', 'tsconfig.base.json', 'scripts/run.mjs'];
const bundleOf = (hash) => path.join(dir, `${name}-${hash}.mjs`);

function cached() {
  try {
    const file = bundleOf(hashOf(JSON.parse(readFileSync(inputsFile, 'utf8'))));
    statSync(file);
    return file;
  } catch {
    return undefined;
  }
}

/** Whole or not at all: others may start the same entry at this moment. */
function write(file, content) {
  const half = `${file}.${process.pid}`;
  writeFileSync(half, content);
  renameSync(half, file);
}

async function bundle() {
  const startedAt = Date.now();
  const { build } = await import('esbuild');
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile: path.join(dir, `${name}.mjs`),
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    sourcemap: 'inline',
    logLevel: 'warning',
    define: { 'process.env.ISTHMUS_ROOT': JSON.stringify(root) },
  });
  const inputs = [...always, ...Object.keys(metafile.inputs).sort()];
  mkdirSync(dir, { recursive: true });
  // Edited meanwhile: which of the two versions is in the bundle is unknown, so it is used once and not cached.
  if (inputs.some((input) => statSync(path.join(root, input)).mtimeMs >= startedAt)) {
    const once = path.join(dir, `${name}-${process.pid}.mjs`);
    writeFileSync(once, outputFiles[0].contents);
    process.on('exit', () => rmSync(once, { force: true }));
    return once;
  }
  const file = bundleOf(hashOf(inputs));
  write(file, outputFiles[0].contents);
  write(inputsFile, JSON.stringify(inputs));
  forget(file);
  return file;
}

/** Earlier bundles of this entry; what was made within the hour may be just about to be loaded. */
function forget(kept) {
  for (const each of readdirSync(dir)) {
    const file = path.join(dir, each);
    if (!each.startsWith(`${name}-`) || file === kept || !/-[0-9a-f]{24}\.mjs$/.test(each)) continue;
    if (each.length !== path.basename(kept).length) continue;
    try {
      if (Date.now() - statSync(file).mtimeMs > 3_600_000) rmSync(file, { force: true });
    } catch {
      // another process removed it
    }
  }
}

const file = cached() ?? (await bundle());
process.setSourceMapsEnabled(true);
process.argv = [process.argv[0], path.join(root, entry), ...args];
await import(pathToFileURL(file).href);
