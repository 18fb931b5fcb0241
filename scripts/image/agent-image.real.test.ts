/** The agent's image as a whole: the same from the same sources, small, labelled, and running without a shell and without root. */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { must } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type AgentImage, buildAgentImage } from './agent-image.ts';
import { fabricSources } from './bundle.ts';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-image-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Into an empty folder, so that nothing is found ready. */
const build = (name: string): Promise<AgentImage> =>
  buildAgentImage(repositoryRoot, { folder: path.join(scratch, name), cache: cacheDir() });

describe('the image of the agent', () => {
  let image: AgentImage;
  let files: string[];
  beforeAll(async () => {
    image = await build('first');
    await must('tar', ['-xf', image.tarPath, '-C', scratch]);
    const manifest = JSON.parse((await must('tar', ['-xOf', image.tarPath, 'manifest.json'])).stdout) as {
      Layers: string[];
    }[];
    const layers = manifest[0]?.Layers ?? [];
    const listed = await Promise.all(layers.map((layer) => must('tar', ['-tzf', path.join(scratch, layer)])));
    files = listed.flatMap(({ stdout }) => stdout.split('\n'));
  });

  test('has the same digest whenever it is built from the same sources', async () => {
    expect((await build('second')).digest).toBe(image.digest);
  });

  test('is under 80 MB compressed', () => {
    expect(image.compressedBytes).toBeLessThan(80e6);
  });

  test('carries node, the network tools and no shell', () => {
    for (const file of [
      'usr/local/bin/node',
      'usr/sbin/ip',
      'usr/sbin/nft',
      'usr/sbin/wg',
      'usr/sbin/wireguard-go',
      'usr/sbin/nsenter',
      'usr/sbin/unshare',
      'usr/sbin/setpriv',
      'usr/sbin/ping',
      'usr/sbin/conntrack',
      'usr/sbin/sleep',
      'app/main.mjs',
      'app/fabric.mjs',
    ]) {
      expect(files).toContain(file);
    }
    expect(files.filter((file) => /(^|\/)(ba|da|z)?sh$/.test(file))).toEqual([]);
  });

  test('has a node process that carries no library, whose memory every node would pay', async () => {
    const packages = (await fabricSources(repositoryRoot)).filter((file) => file.includes('node_modules/'));
    expect(packages.filter((file) => /node_modules\/(zod|@kubernetes|ws|jose|pino)\//.test(file))).toEqual([]);
  });

  test('names itself, its version and its licence, and runs as an unprivileged user', async () => {
    const manifest = JSON.parse((await must('tar', ['-xOf', image.tarPath, 'manifest.json'])).stdout) as {
      Config: string;
    }[];
    const text = (await must('tar', ['-xOf', image.tarPath, manifest[0]?.Config ?? ''])).stdout;
    const { config } = JSON.parse(text) as { config: { Labels: Record<string, string>; User: string } };
    expect(config.Labels).toMatchObject({
      'org.opencontainers.image.title': 'Isthmus agent',
      'org.opencontainers.image.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
      'org.opencontainers.image.licenses': 'Apache-2.0',
    });
    expect(config.User).toMatch(/^65532/);
  });

  test('tells its version when asked, from its own files alone', async () => {
    const rootfs = path.join(scratch, 'rootfs');
    await must('mkdir', ['-p', rootfs]);
    const manifest = JSON.parse((await must('tar', ['-xOf', image.tarPath, 'manifest.json'])).stdout) as {
      Layers: string[];
    }[];
    for (const layer of manifest[0]?.Layers ?? []) await must('tar', ['-xzf', path.join(scratch, layer), '-C', rootfs]);
    for (const entry of ['/app/main.mjs', '/app/fabric.mjs']) {
      const { stdout } = await must('chroot', [
        '--userspec=65532:65532',
        rootfs,
        '/usr/local/bin/node',
        entry,
        'version',
      ]);
      expect(stdout.trim()).toMatch(/^\d+\.\d+\.\d+/);
    }
    // What a gateway does: a tunnel device made by wireguard-go, in a network namespace of its own.
    await must('mkdir', ['-p', path.join(rootfs, 'dev/net'), path.join(rootfs, 'var/run/wireguard')]);
    await must('mknod', [path.join(rootfs, 'dev/net/tun'), 'c', '10', '200']);
    const made = await must('unshare', [
      '--net',
      'sh',
      '-c',
      `chroot ${rootfs} /usr/sbin/wireguard-go -f liqo-tunnel & pid=$!
       for _ in $(seq 600); do chroot ${rootfs} /usr/sbin/wg show liqo-tunnel 2>/dev/null && break; chroot ${rootfs} /usr/sbin/sleep 0.05; done
       kill $pid; wait $pid`,
    ]);
    expect(made.stdout, made.stderr).toContain('interface: liqo-tunnel');
    const tools = [
      ['nsenter', '--version'],
      ['unshare', '--version'],
      ['setpriv', '--version'],
      ['ping', '-V'],
      ['conntrack', '--version'],
      ['sleep', '0'],
      ['nft', '--version'],
      ['wg', '--version'],
      ['wireguard-go', '--version'],
    ];
    for (const [name = '', ...args] of tools) await must('chroot', [rootfs, `/usr/sbin/${name}`, ...args]);
  });
});
