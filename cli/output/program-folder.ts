/** Where this program's own files are. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Of the file that runs: the bundle, or in a checkout that of `.build/run`. */
export const programFolder: string = path.dirname(fileURLToPath(import.meta.url));
/** The root of the checkout. `scripts/run.mjs` replaces the expression by a constant; from source this file's own place says it. */
export const sourceFolder: string = process.env.ISTHMUS_ROOT ?? path.resolve(programFolder, '..', '..');
