/** For tests: the file system that a node makes of a saved image. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '#scripts/setup/run-command.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Architecture } from './oci.ts';
import { manifestOf, readLayout } from './push.ts';

export interface UnpackedImage {
  readonly root: string;
  readonly files: readonly string[];
  readonly config: { readonly Labels: Readonly<Record<string, string>>; readonly User: string };
}

/** `into`/root-ARCHITECTURE becomes its root. Layers are of zstd. */
export async function unpackImage(tar: string, architecture: Architecture, into: string): Promise<UnpackedImage> {
  const layout = readLayout(readFileSync(tar));
  const { manifests = [layout.root] } = manifestOf(layout, layout.root);
  const chosen = manifests.find(({ platform }) => platform?.architecture === architecture);
  const { layers = [], config } = chosen ? manifestOf(layout, chosen) : {};
  if (config === undefined) throw new AppError('not_found', `${tar} holds no image for ${architecture}`);
  const root = path.join(into, `root-${architecture}`);
  mkdirSync(root, { recursive: true });
  const files: string[] = [];
  for (const [i, { digest }] of layers.entries()) {
    const file = path.join(into, `${architecture}-${i}.tar.zst`);
    writeFileSync(file, layout.blob(digest));
    files.push(...(await runCommand('tar', ['--zstd', '-xvf', file, '-C', root])).split('\n'));
  }
  const settings = JSON.parse(layout.blob(config.digest).toString()) as { config: UnpackedImage['config'] };
  return { root, files, config: settings.config };
}
