/** What keeps vitest's cache of transformed modules from serving one that this checkout would not give now. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'vitest/config';

/**
 * Vitest's own key is a module's path and text, the plugins' names and the resolved configuration. A transformed module depends on more: how names of
 * imports resolve (package.json, the installed packages) and how TypeScript is compiled. Our imports name whole files, so which other files are there
 * changes none. All of these have to be files below `root`.
 */
export function moduleCacheKey(root: string): Plugin {
  const rooms = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const files = [
    'package.json',
    'node_modules/.package-lock.json',
    'vitest.config.ts',
    'tsconfig.base.json',
    'tsconfig.json',
    ...rooms.map(({ name }) => path.join(name, 'tsconfig.json')),
  ];
  const hash = createHash('sha256').update(process.version);
  for (const file of files) {
    const at = path.join(root, file);
    if (existsSync(at)) hash.update(`\0${file}\0`).update(readFileSync(at));
  }
  const key = hash.digest('hex');
  return {
    name: 'isthmus:module-cache-key',
    configureVitest: ({ experimental_defineCacheKeyGenerator }) => experimental_defineCacheKeyGenerator(() => key),
  };
}
