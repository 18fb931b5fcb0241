/** Single executables: the one for this machine used where no Node is, the one for arm64 under qemu's user mode, and what the others are made of. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { version } from '#cli/output/version.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureDebianTree, findInTree } from '#scripts/setup/debian-tree.ts';
import { freePort } from '#test/aws/free-port.ts';
import { eventually } from '#test/harness/eventually.ts';
import { background, must, run } from '#test/harness/program.ts';
import { endProcess } from '#test/testbed/processes.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { buildExecutables, type System, systems } from './executables.ts';

const builds = path.join(repositoryRoot, '.build');
mkdirSync(builds, { recursive: true });
const scratch = mkdtempSync(path.join(builds, 'executables-'));
const [cache, log] = [cacheDir(), (line: string) => console.error(line)];
const programOf = (system: System): string => path.join(scratch, system);
let built: ReadonlyMap<System, Buffer>;
beforeAll(async () => {
  built = await buildExecutables({ root: repositoryRoot, cache, log }, systems);
  for (const [system, content] of built) writeFileSync(programOf(system), content, { mode: 0o755 });
}, 900_000);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** No Node on the path, no configuration, an empty folder. */
const bare = { cwd: scratch, env: { PATH: '/nonexistent', HOME: scratch } };
const answer = { code: 0, stdout: `isthmus ${version}\n`, stderr: '' };

test('the one for this machine needs no Node', async () => {
  expect(await run(programOf('linux-amd64'), ['version', '--client'], bare)).toMatchObject(answer);
  expect(await run(programOf('linux-amd64'), ['peer', 'rome'], bare)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("missing required argument 'provider'"),
  });
});

test('the one for this machine runs a broker with its console, and logs in to it', async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  const log = path.join(scratch, 'broker.log');
  const data = path.join(scratch, 'data');
  const broker = background(
    programOf('linux-amd64'),
    ['broker', 'serve', '--data', data, '--listen', listen],
    log,
    bare.env,
  );
  try {
    const login = await eventually('the login line', async () =>
      /isthmus (login .*)/.exec((await must('cat', [log])).stdout)?.[1]?.split(' '),
    );
    await must(programOf('linux-amd64'), login, bare);
    expect(await run(programOf('linux-amd64'), ['get', 'clusters', '-o', 'json'], bare)).toMatchObject({ code: 0 });
    const page = await must('curl', ['-sS', '--cacert', path.join(data, 'tls', 'ca.pem'), `https://${listen}/`]);
    expect(page.stdout).toContain('<html');
  } finally {
    await endProcess(broker.pid ?? 0, 10_000);
  }
}, 120_000);

test('the one for arm64 runs, too', async () => {
  const tree = await ensureDebianTree({ architecture: 'amd64', packages: ['qemu-user-static'], cache, log });
  const qemu = findInTree(tree, '/usr/bin/qemu-aarch64-static')?.file ?? '';
  const libraries = await ensureDebianTree({
    architecture: 'arm64',
    packages: ['libatomic1', 'libc6', 'libgcc-s1', 'libstdc++6'],
    cache,
    log,
  });
  const root = path.join(scratch, 'arm64');
  mkdirSync(root);
  for (const { folder } of libraries.packages) await must('cp', ['-a', `${folder}/.`, root]);
  if (!existsSync(path.join(root, 'lib'))) symlinkSync('usr/lib', path.join(root, 'lib'));
  const ended = await run(qemu, ['-L', root, programOf('linux-arm64'), 'version', '--client'], { timeoutMs: 120_000 });
  expect(ended).toMatchObject({ code: 0, stdout: answer.stdout });
}, 300_000);

test.each([
  ['linux-arm64', '7f454c46'],
  ['darwin-amd64', 'cffaedfe'],
  ['darwin-arm64', 'cffaedfe'],
  ['windows-amd64', '4d5a'],
] as const)('the one for %s is a program of that system, with the command line inside', (system, magic) => {
  const content = built.get(system);
  expect(content?.subarray(0, 4).toString('hex')).toMatch(new RegExp(`^${magic}`));
  expect(content?.includes('From nothing to a pod that runs next door')).toBe(true);
  expect(content?.includes('NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:1')).toBe(true);
});
