/** `npm run lambda`: bundles every cloud function into `dist/lambda/<function>/index.mjs` and prints what it weighs and how fast it loads. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import { budget } from './budget.ts';
import { bundleFunctions } from './bundle.ts';
import { importMs } from './import-time.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const node = await ensureNode24({ root, cache: cacheDir(), log: (line) => console.error(line) });
const bundles = await bundleFunctions({ root, outDir: path.join(root, 'dist', 'lambda') });

console.log(['function'.padEnd(34), 'minified KB', '    gzip KB', '  import ms'].join(' '));
let worst = { bytes: 0, ms: 0 };
for (const { fn, file, bytes } of bundles) {
  const ms = await importMs(node, file);
  const packed = gzipSync(readFileSync(file)).length;
  worst = { bytes: Math.max(worst.bytes, bytes), ms: Math.max(worst.ms, ms) };
  const columns = [(bytes / 1024).toFixed(0), (packed / 1024).toFixed(0), ms.toFixed(0)];
  console.log([fn.name.padEnd(34), ...columns.map((text) => text.padStart(11))].join(' '));
}
const { maxBytes, importMs: maxMs } = budget;
console.log(
  `${bundles.length} functions; largest ${(worst.bytes / 1024).toFixed(0)} of ${maxBytes / 1024} KB, slowest import ${worst.ms.toFixed(0)} of ${maxMs} ms`,
);
if (worst.bytes > maxBytes) {
  console.error('a bundle is over its budget: look at what it imports with `npx esbuild --analyze`');
  process.exitCode = 1;
}
