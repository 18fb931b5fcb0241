/** Writes container images without a container engine: the same files and settings always give the same bytes. */
import { createHash } from 'node:crypto';
import { type TarEntry, writeTar } from '#shared/archive/tar.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Compression } from './compression.ts';

export type Architecture = 'amd64' | 'arm64';

/** By digest, `sha256:…`. */
type Blobs = ReadonlyMap<string, Uint8Array>;

/** As manifests and indexes point to a blob. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: Architecture; readonly os: 'linux' };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** One entry of the image's file system. Parent directories that are not named are made with mode 0755, all owned by root. */
export type ImageFile = {
  /** Absolute. */
  readonly path: string;
  readonly mode: number;
} & ({ readonly content: Uint8Array } | { readonly directory: true } | { readonly linkTo: string });

export interface ImageConfig {
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** `uid`, `uid:gid` or a name from the image's /etc/passwd. */
  readonly user?: string;
  readonly workingDir?: string;
  readonly exposedPorts?: readonly string[];
}

export interface ImageSpec {
  readonly architecture: Architecture;
  /** One list per layer, lowest first. Put what rarely changes first. */
  readonly layers: readonly (readonly ImageFile[])[];
  readonly config: ImageConfig;
  readonly compression: Compression;
}

/** An image of one architecture. */
export interface Image {
  readonly manifest: Descriptor;
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
  /** All of them, the manifest included. */
  readonly blobs: Blobs;
  /** What a registry stores of it: layers, configuration and manifest. */
  readonly compressedBytes: number;
}

export const mediaTypes = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
} as const;

const epoch = '1970-01-01T00:00:00Z';
export const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
export const jsonOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
export const describe = (mediaType: string, bytes: Uint8Array): Descriptor => ({
  mediaType,
  digest: digestOf(bytes),
  size: bytes.length,
});

const relative = (path: string): string => {
  if (!path.startsWith('/'))
    throw new AppError('invalid_input', `image paths are absolute, got ${JSON.stringify(path)}`);
  return path.slice(1).replace(/\/+$/, '');
};

/** Sorted by path with parents first; each path once, a later entry of the list replaces an earlier one. */
function layerEntries(files: readonly ImageFile[]): TarEntry[] {
  const entries = new Map<string, TarEntry>();
  const parents = new Set<string>();
  for (const file of files) {
    const name = relative(file.path);
    const common = { name, mode: file.mode };
    for (let cut = name.indexOf('/'); cut > 0; cut = name.indexOf('/', cut + 1)) parents.add(name.slice(0, cut));
    if ('content' in file) entries.set(name, { ...common, kind: 'file', content: file.content });
    else if ('linkTo' in file) entries.set(name, { ...common, kind: 'link', target: file.linkTo });
    else entries.set(name, { ...common, name: `${name}/`, kind: 'directory' });
  }
  for (const parent of parents)
    if (!entries.has(parent)) entries.set(parent, { name: `${parent}/`, mode: 0o755, kind: 'directory' });
  return [...entries.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
}

function runtimeConfig(config: ImageConfig): Record<string, unknown> {
  return {
    ...(config.user === undefined ? {} : { User: config.user }),
    ...(config.exposedPorts === undefined
      ? {}
      : { ExposedPorts: Object.fromEntries(config.exposedPorts.map((port) => [port, {}])) }),
    Env: Object.entries(config.env ?? {}).map(([name, value]) => `${name}=${value}`),
    ...(config.entrypoint === undefined ? {} : { Entrypoint: config.entrypoint }),
    ...(config.command === undefined ? {} : { Cmd: config.command }),
    ...(config.workingDir === undefined ? {} : { WorkingDir: config.workingDir }),
    ...(config.labels === undefined ? {} : { Labels: config.labels }),
  };
}

export async function buildImage(spec: ImageSpec): Promise<Image> {
  const blobs = new Map<string, Uint8Array>();
  const keep = (mediaType: string, bytes: Uint8Array): Descriptor => {
    const descriptor = describe(mediaType, bytes);
    blobs.set(descriptor.digest, bytes);
    return descriptor;
  };
  const layers: Descriptor[] = [];
  const diffIds: string[] = [];
  const { suffix, compress } = spec.compression;
  for (const files of spec.layers) {
    const plain = writeTar(layerEntries(files));
    diffIds.push(digestOf(plain));
    layers.push(keep(`application/vnd.oci.image.layer.v1.tar${suffix}`, await compress(plain)));
  }
  const config = keep(
    mediaTypes.config,
    jsonOf({
      created: epoch,
      architecture: spec.architecture,
      os: 'linux',
      config: runtimeConfig(spec.config),
      rootfs: { type: 'layers', diff_ids: diffIds },
      history: diffIds.map(() => ({ created: epoch, created_by: 'isthmus image writer' })),
    }),
  );
  const manifest = keep(
    mediaTypes.manifest,
    jsonOf({ schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers }),
  );
  const compressedBytes = manifest.size + config.size + layers.reduce((total, { size }) => total + size, 0);
  const platform = { architecture: spec.architecture, os: 'linux' } as const;
  return { manifest: { ...manifest, platform }, config, layers, blobs, compressedBytes };
}

export interface ImageIndex {
  readonly index: Descriptor;
  /** The index, and all of its images. */
  readonly blobs: Blobs;
}

/** One image for several architectures. */
export function buildIndex(images: readonly Image[]): ImageIndex {
  const manifests = images.map(({ manifest }) => manifest);
  const bytes = jsonOf({ schemaVersion: 2, mediaType: mediaTypes.index, manifests });
  const index = describe(mediaTypes.index, bytes);
  return { index, blobs: new Map([...images.flatMap(({ blobs }) => [...blobs]), [index.digest, bytes]]) };
}

/**
 * An OCI image layout as a tar that also carries the `manifest.json` of `docker load`, which takes the first of several images. `name` is the full
 * reference, for example `isthmus.dev/agent:0.1.0`.
 */
export function imageTar(name: string, images: readonly Image[]): { readonly tar: Buffer; readonly digest: string } {
  const [first] = images;
  if (first === undefined) throw new AppError('invalid_input', 'an image tar needs an image');
  const whole = images.length === 1 ? { index: first.manifest, blobs: first.blobs } : buildIndex(images);
  const annotations = {
    'io.containerd.image.name': name,
    'org.opencontainers.image.ref.name': name.split(':').at(-1) ?? 'latest',
  };
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [{ ...whole.index, annotations }] };
  const dockerManifest = [
    {
      Config: blobPath(first.config.digest),
      RepoTags: [name],
      Layers: first.layers.map(({ digest }) => blobPath(digest)),
    },
  ];
  const file = (name: string, content: Uint8Array): TarEntry => ({ name, mode: 0o644, kind: 'file', content });
  const directory = (name: string): TarEntry => ({ name, mode: 0o755, kind: 'directory' });
  const tar = writeTar([
    directory('blobs/'),
    directory('blobs/sha256/'),
    ...[...whole.blobs]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([digest, content]) => file(blobPath(digest), content)),
    file('index.json', jsonOf(index)),
    file('manifest.json', jsonOf(dockerManifest)),
    file('oci-layout', jsonOf({ imageLayoutVersion: '1.0.0' })),
  ]);
  return { tar, digest: whole.index.digest };
}

const blobPath = (digest: string): string => `blobs/sha256/${digest.slice('sha256:'.length)}`;
