// Builds the console with vite into .build/console-HASH, unless it is there, and prints that folder; with --out DIR into DIR.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const { out } = parseArgs({ options: { out: { type: 'string' } } }).values;
/** All that it can be made of. */
const sources = ['console', 'shared/api-client', 'shared/domain', 'shared/errors', 'shared/async'];
const always = ['package-lock.json', 'scripts/console/build.mjs'];

function folderName() {
  const hash = createHash('sha256');
  const files = sources.flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.includes('.test.'))
      .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name))),
  );
  for (const file of [...files.sort(), ...always]) {
    hash.update(`\0${file}\0`).update(readFileSync(path.join(root, file)));
  }
  return path.join(root, '.build', `console-${hash.digest('hex').slice(0, 24)}`);
}

const isBuilt = (folder) => existsSync(path.join(folder, 'index.html'));

async function build(folder) {
  const { build: buildWithVite } = await import('vite');
  mkdirSync(path.join(root, '.build'), { recursive: true });
  const half = mkdtempSync(path.join(root, '.build', 'half-console-'));
  try {
    await buildWithVite({
      configFile: false,
      root: path.join(root, 'console'),
      base: './',
      logLevel: 'warn',
      oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
      build: { outDir: half, emptyOutDir: true, target: 'es2022', assetsInlineLimit: 0, modulePreload: false },
    });
    chmodSync(half, 0o755);
    // Whole or not at all: another process may build the same at this moment, and then its folder is as good.
    if (!isBuilt(folder)) renameSync(half, folder);
  } catch (error) {
    if (!isBuilt(folder)) throw error;
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
  forget(folder);
}

/** Builds of an hour ago and more; a broker has read its files into memory. */
function forget(kept) {
  for (const name of readdirSync(path.join(root, '.build'))) {
    const old = path.join(root, '.build', name);
    if (!/^console-[0-9a-f]{24}$/.test(name) || old === kept) continue;
    const { mtimeMs } = statSync(old, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > 3_600_000) rmSync(old, { recursive: true, force: true });
  }
}

const folder = folderName();
if (!isBuilt(folder)) await build(folder);
if (out !== undefined) cpSync(folder, path.resolve(out), { recursive: true });
console.log(out === undefined ? folder : path.resolve(out));
