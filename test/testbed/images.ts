/** The images of the bed as tar files in the cache: pause, workload and CoreDNS, each one static binary. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { uncompressed } from '#scripts/image/compression.ts';
import { buildImage, type ImageConfig, type ImageFile, imageTar } from '#scripts/image/oci.ts';
import { buildCoreDns, buildMetricsServer, buildWorkload } from './build.ts';
import { pauseImage } from './node-config.ts';

const workloadImage = 'isthmus.test/workload:1';
export const coreDnsImage = 'isthmus.test/coredns:1';
export const metricsServerImage = 'isthmus.test/metrics-server:1';

export interface BedImages {
  /** Go into every node. */
  readonly everywhere: readonly string[];
  readonly coreDns: string;
}

/** Names under which the workload's binary can be called without a path: `kubectl exec POD -- cat`. */
const links = ['cat', 'echo', 'env', 'sleep', 'get', 'dns', 'udp-send'];

async function bedImageTar(
  cache: string,
  name: string,
  binary: string,
  config: ImageConfig,
  more: readonly ImageFile[] = [],
): Promise<string> {
  const program = path.basename(binary);
  const files: ImageFile[] = [
    { path: `/bin/${program}`, mode: 0o755, content: await readFile(binary) },
    ...emptyFolders,
    ...more,
  ];
  return await imageTarOf(cache, name, { ...config, env: { PATH: '/bin', ...config.env } }, files);
}

/** What programs and container runtimes expect of any image. */
export const emptyFolders: readonly ImageFile[] = [
  { path: '/tmp', mode: 0o1777, directory: true },
  ...['/etc', '/proc', '/sys', '/dev', '/var'].map((dir): ImageFile => ({ path: dir, mode: 0o755, directory: true })),
];

/** The path of the image's tar, which is in the cache already when its files and settings are those of before. */
export async function imageTarOf(
  cache: string,
  name: string,
  config: ImageConfig,
  files: readonly ImageFile[],
): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify([name, config]));
  for (const file of files) {
    hash.update(JSON.stringify({ ...file, content: '' }));
    if ('content' in file) hash.update(file.content);
  }
  const key = hash.digest('hex').slice(0, 16);
  const file = path.join(cache, 'images', `${name.replaceAll(/[^a-z0-9.]+/g, '-')}-${key}.tar`);
  if (existsSync(file)) return file;
  await mkdir(path.dirname(file), { recursive: true });
  const partial = `${file}.${process.pid}.partial`;
  // Not compressed: these never travel, and unpacking is on the way to a ready cluster.
  const image = await buildImage({ architecture: 'amd64', layers: [files], config, compression: uncompressed });
  await writeFile(partial, imageTar(name, [image]).tar);
  await rename(partial, file);
  return file;
}

/** The path of its tar, for `importImage`. */
export async function buildMetricsServerImage(cache: string, log: (line: string) => void): Promise<string> {
  const binary = await buildMetricsServer({ cache, log });
  return await bedImageTar(cache, metricsServerImage, binary, { entrypoint: ['/bin/metrics-server'] });
}

export async function buildImages(cache: string, log: (line: string) => void): Promise<BedImages> {
  const [workload, coreDns] = [await buildWorkload({ cache, log }), await buildCoreDns({ cache, log })];
  const linked = links.map((name): ImageFile => ({ path: `/bin/${name}`, mode: 0o777, linkTo: 'workload' }));
  const [pauseTar, workloadTar, coreDnsTar] = await Promise.all([
    bedImageTar(cache, pauseImage, workload, { entrypoint: ['/bin/workload', 'pause'] }),
    bedImageTar(cache, workloadImage, workload, { entrypoint: ['/bin/workload'], command: ['serve'] }, linked),
    bedImageTar(cache, coreDnsImage, coreDns, { entrypoint: ['/bin/coredns'] }),
  ]);
  return { everywhere: [pauseTar, workloadTar], coreDns: coreDnsTar };
}
