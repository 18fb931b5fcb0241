/** The root of this repository, in a bundle of `scripts/run.mjs` as well as when run from source. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';

// The bundler replaces the expression by a constant; from source this file's own place says it.
export const repositoryRoot: string =
  process.env.ISTHMUS_ROOT ?? path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
