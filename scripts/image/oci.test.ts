import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '#scripts/setup/run-command.ts';
import { readTar } from '#shared/archive/tar.ts';
import { type Compression, uncompressed } from './compression.ts';
import { buildImage, buildIndex, type ImageFile, type ImageSpec, imageTar } from './oci.ts';

const text = (content: string): Buffer => Buffer.from(content);
const name = 'isthmus.test/sample:1';
const gzip: Compression = { suffix: '+gzip', compress: (bytes) => Promise.resolve(gzipSync(bytes)) };
const spec: ImageSpec = {
  architecture: 'amd64',
  compression: gzip,
  layers: [
    [{ path: '/bin/tool', mode: 0o755, content: text('#!') }],
    [
      { path: '/etc/passwd', mode: 0o644, content: text('root') },
      { path: '/tmp', mode: 0o1777, directory: true },
      { path: '/bin/alias', mode: 0o777, linkTo: 'tool' },
    ],
  ],
  config: { entrypoint: ['/bin/tool'], user: '65532', env: { B: '2', A: '1' }, labels: { version: '1' } },
};

const tarOf = async (of: ImageSpec): Promise<Buffer> => imageTar(name, [await buildImage(of)]).tar;

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-oci-'));
});
afterAll(async () => await rm(dir, { recursive: true }));

interface Layout {
  readonly manifestDigest: string;
  readonly manifest: { config: { digest: string }; layers: { digest: string; mediaType: string; size: number }[] };
  readonly config: { config: Record<string, unknown>; rootfs: { diff_ids: string[] } };
  readonly blob: (digest: string) => Promise<Buffer>;
}

async function unpack(tar: Buffer): Promise<Layout> {
  const folder = await mkdtemp(path.join(dir, 'layout-'));
  await writeFile(path.join(folder, 'image.tar'), tar);
  await runCommand('tar', ['-xf', path.join(folder, 'image.tar'), '-C', folder]);
  const blob = (digest: string): Promise<Buffer> =>
    readFile(path.join(folder, 'blobs', 'sha256', digest.replace('sha256:', '')));
  const json = async (bytes: Promise<Buffer>): Promise<never> => JSON.parse((await bytes).toString()) as never;
  const index = (await json(readFile(path.join(folder, 'index.json')))) as { manifests: { digest: string }[] };
  const manifestDigest = index.manifests[0]?.digest ?? '';
  const manifest = (await json(blob(manifestDigest))) as Layout['manifest'];
  return { manifestDigest, manifest, config: await json(blob(manifest.config.digest)), blob };
}

const digest = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

describe('an image', () => {
  test('has the same bytes for every order of its files', async () => {
    const reversed = { ...spec, layers: spec.layers.map((files) => [...files].reverse()) };
    expect((await tarOf(reversed)).equals(await tarOf(spec))).toBe(true);
  });

  test.each([
    { by: 'gzip', compression: gzip },
    { by: 'nothing', compression: uncompressed },
  ])('is a layout whose every digest is right, compressed by $by', async ({ compression }) => {
    const built = await buildImage({ ...spec, compression });
    const { manifestDigest, manifest, config, blob } = await unpack(imageTar(name, [built]).tar);
    expect(manifestDigest).toBe(built.manifest.digest);
    expect(digest(await blob(manifestDigest))).toBe(manifestDigest);
    expect(digest(await blob(manifest.config.digest))).toBe(manifest.config.digest);
    for (const [i, layer] of manifest.layers.entries()) {
      const bytes = await blob(layer.digest);
      expect(digest(bytes)).toBe(layer.digest);
      expect(bytes.length).toBe(layer.size);
      expect(digest(compression === gzip ? gunzipSync(bytes) : bytes)).toBe(config.rootfs.diff_ids[i]);
    }
    expect(config.config).toMatchObject({
      Entrypoint: ['/bin/tool'],
      User: '65532',
      Env: ['B=2', 'A=1'],
      Labels: { version: '1' },
    });
  });

  test('unpacks to the files, modes and links that went in', async () => {
    const { manifest, blob } = await unpack(await tarOf(spec));
    const root = await mkdtemp(path.join(dir, 'root-'));
    for (const [i, layer] of manifest.layers.entries()) {
      await writeFile(path.join(dir, `layer-${i}.tar.gz`), await blob(layer.digest));
      await runCommand('tar', [
        '--extract',
        '--preserve-permissions',
        '--file',
        path.join(dir, `layer-${i}.tar.gz`),
        '--directory',
        root,
      ]);
    }
    expect(await readFile(path.join(root, 'bin', 'alias'), 'utf8')).toBe('#!');
    expect((await stat(path.join(root, 'tmp'))).mode & 0o7777).toBe(0o1777);
    expect((await stat(path.join(root, 'bin', 'tool'))).mode & 0o7777).toBe(0o755);
    expect((await stat(path.join(root, 'etc'))).mode & 0o7777).toBe(0o755);
  });

  test('carries any file through tar unchanged, long paths included', async () => {
    const segment = fc.stringMatching(/^[a-z]{1,60}$/);
    const path255 = fc
      .array(segment, { minLength: 1, maxLength: 4 })
      .map((parts) => parts.join('/'))
      .filter((name) => name.length < 200);
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(path255, fc.uint8Array({ maxLength: 1500 }), { minKeys: 1, maxKeys: 5 }),
        async (contents) => {
          // A name that is also a folder of another would be neither.
          const names = Object.keys(contents).filter(
            (name) => !Object.keys(contents).some((other) => other.startsWith(`${name}/`)),
          );
          const files = names.map(
            (name): ImageFile => ({ path: `/${name}`, mode: 0o644, content: contents[name] ?? new Uint8Array() }),
          );
          const { manifest, blob } = await unpack(await tarOf({ ...spec, layers: [files], compression: uncompressed }));
          const root = await mkdtemp(path.join(dir, 'any-'));
          await writeFile(path.join(root, '0.tar'), await blob(manifest.layers[0]?.digest ?? ''));
          await runCommand('tar', ['-xf', path.join(root, '0.tar'), '-C', root]);
          for (const name of names)
            expect(new Uint8Array(await readFile(path.join(root, name)))).toEqual(contents[name]);
        },
      ),
      { numRuns: 25 },
    );
  });

  test.each([
    { file: { path: 'relative', mode: 0o644, content: text('') }, says: 'image paths are absolute, got "relative"' },
    { file: { path: `/${'a'.repeat(300)}`, mode: 0o644, content: text('') }, says: 'too long for a tar header' },
    { file: { path: '/link', mode: 0o777, linkTo: 'a'.repeat(120) }, says: 'longer than 100 bytes' },
  ])('refuses what a tar cannot hold: $says', async ({ file, says }) => {
    await expect(buildImage({ ...spec, layers: [[file]] })).rejects.toThrow(says);
  });
});

describe('an image of two architectures', () => {
  const both = async () => [await buildImage(spec), await buildImage({ ...spec, architecture: 'arm64' })];

  test('is one index in the layout, which names a manifest for each platform', async () => {
    const images = await both();
    const { tar, digest: indexDigest } = imageTar(name, images);
    const files = readTar(tar);
    const layout = JSON.parse(String(files.get('index.json'))) as { manifests: Record<string, unknown>[] };
    expect(layout.manifests).toEqual([
      expect.objectContaining({
        mediaType: 'application/vnd.oci.image.index.v1+json',
        digest: indexDigest,
        annotations: expect.objectContaining({ 'io.containerd.image.name': name }),
      }),
    ]);
    const index = JSON.parse(String(files.get(`blobs/sha256/${indexDigest.slice(7)}`))) as {
      manifests: { digest: string; platform: unknown }[];
    };
    expect(index.manifests.map(({ platform }) => platform)).toEqual([
      { architecture: 'amd64', os: 'linux' },
      { architecture: 'arm64', os: 'linux' },
    ]);
    for (const { digest: manifest } of index.manifests) {
      const bytes = files.get(`blobs/sha256/${manifest.slice(7)}`);
      expect(bytes && digest(bytes)).toBe(manifest);
    }
  });

  test('keeps a layer that both have once', async () => {
    const images = await both();
    const counted = images.reduce((total, { blobs }) => total + blobs.size, 0);
    expect(buildIndex(images).blobs.size).toBe(counted - spec.layers.length + 1);
  });
});

test('reads from a tar the files that were written to it', async () => {
  const { blobs } = await buildImage(spec);
  const files = readTar(await tarOf(spec));
  for (const [of, bytes] of blobs) expect(files.get(`blobs/sha256/${of.slice(7)}`)?.equals(bytes)).toBe(true);
  expect(() => readTar(Buffer.from('x'.repeat(1024)))).toThrow('no tar file');
});
