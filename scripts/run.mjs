// Runs one TypeScript entry point of this repository with the remaining arguments: bundled by esbuild into a folder of .build/run whose name says
// what it was made of, so that it is bundled again only when one of its files changed. What is imported on demand is in files of its own: a
// start reads only what it runs, and the source maps of only that, which takes half the processor time of one file.
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
const main = 'main.mjs';
const folderOf = (hash) => path.join(dir, `${name}-${hash}`);

const holdPrefix = 'used-by.';

/** Until this process ends: it may load a part of the folder hours after its start. Throws when there is no such folder. */
function hold(folder) {
  const mark = path.join(folder, `${holdPrefix}${process.pid}`);
  try {
    writeFileSync(mark, '');
  } catch (error) {
    if (error.code === 'ENOENT') throw error;
    // A checkout that this user may only read.
    return;
  }
  process.on('exit', () => rmSync(mark, { force: true }));
}

function isAlive(pid) {
  try {
    return process.kill(Number(pid), 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

const isHeld = (folder) =>
  readdirSync(folder).some((each) => each.startsWith(holdPrefix) && isAlive(each.slice(holdPrefix.length)));

function cached() {
  try {
    const folder = folderOf(hashOf(JSON.parse(readFileSync(inputsFile, 'utf8'))));
    const file = path.join(folder, main);
    statSync(file);
    hold(folder);
    return file;
  } catch {
    return undefined;
  }
}

const own = path.join(dir, `${name}.${process.pid}`);
const halfWritten = new RegExp(`^${name}\\.(?:inputs\\.json\\.)?(\\d+)$`);
const whole = new RegExp(`^${name}-[0-9a-f]{24}$`);

/** Whole or not at all: others may start the same entry at this moment. */
function writeInputs(inputs) {
  const half = `${inputsFile}.${process.pid}`;
  writeFileSync(half, JSON.stringify(inputs));
  renameSync(half, inputsFile);
}

/** Likewise; another process that was faster has written the same. */
function moveTo(folder) {
  try {
    renameSync(own, folder);
  } catch (error) {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    rmSync(own, { recursive: true, force: true });
  }
}

async function bundle() {
  const startedAt = Date.now();
  const { build } = await import('esbuild');
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    entryNames: 'main',
    outdir: own,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'warning',
    define: { 'process.env.ISTHMUS_ROOT': JSON.stringify(root) },
  });
  const inputs = [...always, ...Object.keys(metafile.inputs).sort()];
  mkdirSync(own, { recursive: true });
  for (const { path: file, contents } of outputFiles) writeFileSync(file, contents);
  // Edited meanwhile: which of the two versions is in the bundle is unknown, so it is used once and not cached.
  if (inputs.some((input) => statSync(path.join(root, input)).mtimeMs >= startedAt)) {
    process.on('exit', () => rmSync(own, { recursive: true, force: true }));
    return path.join(own, main);
  }
  const folder = folderOf(hashOf(inputs));
  moveTo(folder);
  hold(folder);
  writeInputs(inputs);
  forget(folder);
  return path.join(folder, main);
}

/** Earlier bundles of this entry that no process uses, and what killed processes left half. What was made within the hour may be just about to be loaded. */
function forget(kept) {
  for (const each of readdirSync(dir)) {
    const folder = path.join(dir, each);
    const [, pid] = halfWritten.exec(each) ?? [];
    try {
      if (pid !== undefined && !isAlive(pid)) rmSync(folder, { recursive: true, force: true });
      if (folder === kept || !whole.test(each) || isHeld(folder)) continue;
      if (Date.now() - statSync(folder).mtimeMs <= 3_600_000) continue;
      // Gone at once or not at all: a part of a bundle would pass for the whole one.
      renameSync(folder, own);
      rmSync(own, { recursive: true, force: true });
    } catch {
      // another process removed it
    }
  }
}

const file = cached() ?? (await bundle());
process.setSourceMapsEnabled(true);
process.argv = [process.argv[0], path.join(root, entry), ...args];
await import(pathToFileURL(file).href);
