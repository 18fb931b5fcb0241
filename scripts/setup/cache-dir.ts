/** Where built binaries, images and toolchains are kept between runs and between work trees. */
import os from 'node:os';
import path from 'node:path';

/** `ISTHMUS_CACHE`, else `~/.cache/isthmus`. For composition roots: everything else takes the directory as an argument. */
export const cacheDir = (env: NodeJS.ProcessEnv = process.env): string =>
  path.resolve(env.ISTHMUS_CACHE || path.join(os.homedir(), '.cache', 'isthmus'));
