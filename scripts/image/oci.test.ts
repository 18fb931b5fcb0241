import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '#scripts/setup/run-command.ts';
import { buildImage, type ImageFile, type ImageSpec } from './oci.ts';

const text = (content: string): Buffer => Buffer.from(content);
const spec: ImageSpec = {
  name: 'isthmus.test/sample:1',
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
  test('has the same bytes and digest for every order of its files', () => {
    const [first, second] = [
      buildImage(spec),
      buildImage({ ...spec, layers: spec.layers.map((files) => [...files].reverse()) }),
    ];
    expect(second.digest).toBe(first.digest);
    expect(second.tar.equals(first.tar)).toBe(true);
  });

  test.each(['gzip', 'none'] as const)(
    'is a layout whose every digest is right, compressed by %s',
    async (compression) => {
      const built = buildImage({ ...spec, compression });
      const { manifestDigest, manifest, config, blob } = await unpack(built.tar);
      expect(manifestDigest).toBe(built.digest);
      expect(digest(await blob(manifestDigest))).toBe(manifestDigest);
      expect(digest(await blob(manifest.config.digest))).toBe(manifest.config.digest);
      for (const [i, layer] of manifest.layers.entries()) {
        const bytes = await blob(layer.digest);
        expect(digest(bytes)).toBe(layer.digest);
        expect(bytes.length).toBe(layer.size);
        expect(digest(compression === 'gzip' ? gunzipSync(bytes) : bytes)).toBe(config.rootfs.diff_ids[i]);
      }
      expect(config.config).toMatchObject({
        Entrypoint: ['/bin/tool'],
        User: '65532',
        Env: ['B=2', 'A=1'],
        Labels: { version: '1' },
      });
    },
  );

  test('unpacks to the files, modes and links that went in', async () => {
    const { manifest, blob } = await unpack(buildImage(spec).tar);
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
          const { manifest, blob } = await unpack(buildImage({ ...spec, layers: [files], compression: 'none' }).tar);
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
  ])('refuses what a tar cannot hold: $says', ({ file, says }) => {
    expect(() => buildImage({ ...spec, layers: [[file]] })).toThrow(says);
  });
});
