/** Pushes an image that was saved as a tar: its blobs, then the manifests that name them, last the tag. */

import { readTar } from '#shared/archive/tar.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type Descriptor, digestOf, mediaTypes } from './oci.ts';
import type { Registry } from './registry.ts';

export interface Layout {
  /** What the tar is of: an index or a manifest. */
  readonly root: Descriptor;
  /** Fails unless the bytes have that digest. */
  readonly blob: (digest: string) => Buffer;
}

interface Manifest {
  readonly manifests?: readonly Descriptor[];
  readonly config?: Descriptor;
  readonly layers?: readonly Descriptor[];
}

export function readLayout(tar: Buffer): Layout {
  const files = readTar(tar);
  const text = files.get('index.json');
  const root = text && (JSON.parse(text.toString()) as Manifest).manifests?.[0];
  if (root === undefined)
    throw new AppError('invalid_input', 'the tar holds no OCI image layout: it has no index.json');
  const blob = (digest: string): Buffer => {
    const bytes = files.get(`blobs/sha256/${digest.slice('sha256:'.length)}`);
    if (bytes === undefined || digestOf(bytes) !== digest)
      throw new AppError('invalid_input', `the tar holds no intact blob ${digest}`);
    return bytes;
  };
  return { root, blob };
}

export const manifestOf = ({ blob }: Layout, { digest }: Descriptor): Manifest =>
  JSON.parse(blob(digest).toString()) as Manifest;

export interface Pushed {
  readonly digest: string;
  /** Blobs that the registry did not have. */
  readonly sent: number;
  readonly sentBytes: number;
}

/** A push that is repeated sends only what is missing. */
export async function pushLayout(
  layout: Layout,
  registry: Registry,
  tag: string,
  log: (line: string) => void,
): Promise<Pushed> {
  let [sent, sentBytes] = [0, 0];
  const push = async (each: Descriptor, name: string): Promise<void> => {
    const { manifests = [], config, layers = [] } = manifestOf(layout, each);
    for (const inner of manifests) await push(inner, inner.digest);
    for (const { digest, size } of [...layers, ...(config ? [config] : [])]) {
      if (await registry.hasBlob(digest)) continue;
      log(`pushing ${digest.slice(0, 19)}, ${(size / 1e6).toFixed(1)} MB`);
      await registry.putBlob(digest, layout.blob(digest));
      sent += 1;
      sentBytes += size;
    }
    await registry.putManifest(name, each.mediaType, layout.blob(each.digest));
  };
  await push(layout.root, tag);
  const kept = await registry.getManifest(tag, layout.root.mediaType);
  if (kept === undefined || digestOf(kept) !== layout.root.digest)
    throw new AppError('command_failed', `the registry keeps other bytes under ${tag} than ${layout.root.digest}`);
  return { digest: layout.root.digest, sent, sentBytes };
}

/** A manifest of no file system: what carries signatures and attestations. */
export const artefactManifest = (config: Descriptor, layers: readonly Descriptor[]): Buffer =>
  Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers }));
