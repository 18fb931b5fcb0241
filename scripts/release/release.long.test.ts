/** The artefacts of a release, made from a clone, and the command line of it used in an empty folder, where no checkout is. */
import { generateKeyPairSync, verify } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { type Ended, must, run } from '#test/harness/program.ts';
import { buildHelm, buildKrew } from '#test/testbed/build.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { packCli } from './cli-package.ts';
import { sha256 } from './documents.ts';
import { release } from './release.ts';

/** On the file system of node_modules, which are linked, not copied. */
const builds = path.join(repositoryRoot, '.build');
mkdirSync(builds, { recursive: true });
const scratch = mkdtempSync(path.join(builds, 'isthmus-release-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const silent = (): void => undefined;

describe('the command line from its tarball, offline, in an empty folder', () => {
  let tarball: string;
  const empty = path.join(scratch, 'empty');
  beforeAll(async () => {
    mkdirSync(empty);
    ({ tarball } = await packCli(repositoryRoot, path.join(scratch, 'packed')));
  });
  /** With nothing of npm's own cache, and no configuration of ours. */
  const npx = (...args: readonly string[]): Promise<Ended> =>
    run('npx', ['--offline', '--yes', '--package', tarball, '--', 'isthmus', ...args], {
      cwd: empty,
      env: { HOME: empty, npm_config_cache: path.join(scratch, 'npm-cache'), ISTHMUS_CONFIG: path.join(empty, 'none') },
      timeoutMs: 300_000,
    });

  test('tells its version', async () => {
    const { version } = JSON.parse(readFileSync(path.join(repositoryRoot, 'package.json'), 'utf8'));
    expect(await npx('version', '--client')).toMatchObject({ code: 0, stdout: `isthmus ${version}\n` });
  });

  test('explains a mistake as the checkout does', async () => {
    const ended = await npx('peer', 'rome');
    expect(ended).toMatchObject({ code: 2 });
    expect(ended.stderr).toContain("missing required argument 'provider'");
  });

  test('brings the console of `broker serve` along', async () => {
    const { stdout } = await must('tar', ['-tzf', tarball]);
    expect(stdout.split('\n')).toContain('package/lib/console/index.html');
  });

  test('brings the custom resource definitions and the manifests of the agent along', async () => {
    const server = await leaseApiServer();
    try {
      const target = ['--kubeconfig', server.kubeconfigPath, '--api-server-url', server.url];
      const ranges = ['--pod-cidr', '10.200.0.0/16', '--service-cidr', '10.96.0.0/16'];
      // No kubelet runs there, so no agent becomes ready: all of it has been applied by then.
      const ended = await npx('install', '--cluster-id', 'rome', ...target, ...ranges, '--timeout', '5s');
      expect(ended.stderr).toMatch(/not ready|waiting|agent/);
      const kubectl = (...args: readonly string[]) =>
        must(server.kubebox, ['kubectl', '--kubeconfig', server.kubeconfigPath, ...args]);
      const { stdout } = await kubectl('get', 'deployments,crds', '-A', '-o', 'name');
      for (const name of ['virtualnodes.offloading.liqo.io', 'deployment.apps/']) expect(stdout).toContain(name);
    } finally {
      await server.stop();
    }
  });
});

describe('a release', () => {
  const clone = path.join(scratch, 'clone');
  let helm: string;
  let krew: string;
  beforeAll(async () => {
    helm = await buildHelm();
    krew = await buildKrew();
    await must('git', ['clone', '--quiet', '--shared', repositoryRoot, clone]);
    await must('cp', ['-al', path.join(repositoryRoot, 'node_modules'), clone], { timeoutMs: 300_000 });
  }, 900_000);

  test('of a tree with changes is refused before anything is made', async () => {
    const out = path.join(scratch, 'refused');
    writeFileSync(path.join(clone, 'forgotten.txt'), '');
    await expect(release({ root: clone, cache: cacheDir(), out, log: silent })).rejects.toThrow(
      'the tree has changes besides its commit',
    );
    expect(existsSync(out)).toBe(false);
    rmSync(path.join(clone, 'forgotten.txt'));
  });

  // It compresses both architectures of the image.
  test('has checksums that are right, signed, and descriptions that name them', { timeout: 600_000 }, async () => {
    const out = path.join(scratch, 'out');
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const url = 'https://example.test/v';
    const made = await release({
      root: clone,
      cache: cacheDir(),
      out,
      url,
      key: privateKey,
      log: silent,
      executables: [],
    });
    const { version } = made;
    const bytes = (name: string): Buffer => readFileSync(path.join(out, name));
    expect(made.files).toEqual(
      expect.arrayContaining([
        `isthmus-agent-${version}.tar`,
        `isthmus-${version}.tgz`,
        `isthmus-chart-${version}.tgz`,
        `kubectl-isthmus-${version}.tar.gz`,
        'agent-amd64.cdx.json',
        'agent-arm64.cdx.json',
        'agent.provenance.json',
      ]),
    );
    await must('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: out });
    const signature = Buffer.from(bytes('SHA256SUMS.sig').toString(), 'base64');
    expect(verify('sha256', bytes('SHA256SUMS'), publicKey, signature)).toBe(true);
    const listed = bytes('SHA256SUMS').toString();
    for (const name of made.files.filter((file) => !file.startsWith('SHA256SUMS')))
      expect(listed).toContain(`${sha256(bytes(name))}  ${name}`);
    const formula = bytes('isthmus.rb').toString();
    expect(formula).toContain(`sha256 "${sha256(bytes(`isthmus-${version}.tgz`))}"`);
    const archive = `kubectl-isthmus-${version}.tar.gz`;
    expect(yaml.parse(bytes('isthmus.krew.yaml').toString()).spec.platforms[0]).toMatchObject({
      uri: `${url}/${archive}`,
      sha256: sha256(bytes(archive)),
    });
    const chart = path.join(out, `isthmus-chart-${version}.tgz`);
    const shown = await must(helm, ['show', 'chart', chart]);
    expect(yaml.parse(shown.stdout)).toMatchObject({ name: 'isthmus', version, appVersion: version });
    const ranges = 'podCidrs={10.200.0.0/16},network.serviceCidr=10.96.0.0/16,network.externalCidr=10.70.0.0/16';
    const values = `clusterId=rome,apiServerUrl=https://192.0.2.1:6443,network.${ranges}`;
    const said = ['template', 'isthmus', '--include-crds', '--kube-version', '1.30.0', '--set', values];
    const fromTree = await must(helm, [...said, path.join(clone, 'charts', 'isthmus')]);
    expect((await must(helm, [...said, chart])).stdout).toBe(fromTree.stdout);
    const home = path.join(scratch, 'krew');
    const manifest = path.join(out, 'isthmus.krew.yaml');
    const env = { HOME: home, KREW_ROOT: home, KREW_NO_UPGRADE_CHECK: '1' };
    // krew itself checks the manifest, and the archive by the checksum in it.
    await must(krew, ['install', '--manifest', manifest, '--archive', path.join(out, archive)], { env });
    const program = await must(path.join(home, 'bin', 'kubectl-isthmus'), ['version', '--client'], { cwd: home });
    expect(program.stdout).toBe(`isthmus ${version}\n`);
    writeFileSync(path.join(scratch, 'other.tar.gz'), 'another archive');
    const other = await run(
      krew,
      ['install', '--manifest', manifest, '--archive', path.join(scratch, 'other.tar.gz')],
      {
        env: { ...env, KREW_ROOT: path.join(scratch, 'other-krew') },
      },
    );
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('checksum does not match') });
  });
});
