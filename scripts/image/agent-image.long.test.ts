/**
 * The agent's image as a whole: the same from the same sources wherever they are, small, labelled, running without a shell and without root, for
 * both architectures.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { startContainerd } from '#test/harness/containerd.ts';
import { must } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type AgentImage, buildAgentImage } from './agent-image.ts';
import { fabricSources } from './bundle.ts';
import { type UnpackedImage, unpackImage } from './unpack-image.ts';

/** On the file system of node_modules, which are linked, not copied. */
const builds = path.join(repositoryRoot, '.build');
mkdirSync(builds, { recursive: true });
const scratch = mkdtempSync(path.join(builds, 'isthmus-image-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Into an empty folder, so that nothing is found ready. */
const build = (root: string, name: string): Promise<AgentImage> =>
  buildAgentImage(root, { architectures: ['amd64', 'arm64'], folder: path.join(scratch, name), cache: cacheDir() });

describe('the image of the agent', () => {
  let image: AgentImage;
  let files: readonly string[];
  let rootfs: string;
  let config: UnpackedImage['config'];
  beforeAll(async () => {
    image = await build(repositoryRoot, 'first');
    ({ files, root: rootfs, config } = await unpackImage(image.tarPath, 'amd64', scratch));
  });

  test('is the same byte for byte when it is built in another folder', async () => {
    const elsewhere = path.join(scratch, 'elsewhere', 'a', 'copy');
    await must('mkdir', ['-p', elsewhere]);
    const sources = ['agent', 'cli', 'kube', 'shared', 'scripts', 'package.json', 'tsconfig.base.json'];
    await must('cp', ['-a', ...sources, elsewhere], { cwd: repositoryRoot });
    await must('cp', ['-al', 'node_modules', elsewhere], { cwd: repositoryRoot, timeoutMs: 300_000 });
    const other = await build(elsewhere, 'second');
    expect(other.tarPath).not.toBe(image.tarPath);
    expect(readFileSync(other.tarPath).equals(readFileSync(image.tarPath))).toBe(true);
  });

  test('is under 45 MB compressed for each architecture', () => {
    expect(Object.keys(image.sizes)).toEqual(['amd64', 'arm64']);
    for (const bytes of Object.values(image.sizes)) expect(bytes).toBeLessThan(45e6);
  });

  test('is imported by a container runtime of nodes, which unpacks the one for its architecture', async () => {
    const runtime = await startContainerd();
    try {
      await runtime.ctr('images', 'import', '--snapshotter', 'native', image.tarPath);
      const listed = await runtime.ctr('images', 'list');
      expect(listed).toContain(image.reference);
      expect(listed).toContain('linux/amd64,linux/arm64');
      expect(await runtime.ctr('images', 'check', '--snapshotter', 'native')).toMatch(/complete.*true/);
    } finally {
      await runtime.stop();
    }
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

  test('names itself, its version and its licence, and runs as an unprivileged user', () => {
    expect(config.Labels).toMatchObject({
      'org.opencontainers.image.title': 'Isthmus agent',
      'org.opencontainers.image.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
      'org.opencontainers.image.licenses': 'Apache-2.0',
    });
    expect(config.User).toMatch(/^65532/);
  });

  test('tells its version when asked, from its own files alone', async () => {
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
