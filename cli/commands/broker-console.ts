/** Where the files of the console are: beside the packed command, or built from this checkout when the page is first asked for. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { unpackedConsole } from '#cli/output/executable.ts';
import { programFolder, sourceFolder } from '#cli/output/program-folder.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** A first build takes some seconds on a busy machine. */
const buildMs = 120_000;

export async function consoleFolder(): Promise<string> {
  const unpacked = unpackedConsole();
  if (unpacked !== undefined) return unpacked;
  const packed = path.join(programFolder, 'console');
  if (existsSync(path.join(packed, 'index.html'))) return packed;
  try {
    const build = path.join(sourceFolder, 'scripts', 'console', 'build.mjs');
    const { stdout } = await promisify(execFile)(process.execPath, [build], { timeout: buildMs });
    return stdout.trim();
  } catch (cause) {
    throw new AppError(
      'host_unsupported',
      `the console of this checkout cannot be built: ${(cause as Error).message}`,
      {
        cause,
        detail: { remedy: 'run `npm ci` and `npm run console` in the checkout, which say more' },
      },
    );
  }
}
