/** Movers as processes of their own, with rsync as the image has it: what is copied, resumed, compared, and whom they talk to. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { bundleAgent } from '#scripts/image/bundle.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureDebianTree, findInTree } from '#scripts/setup/debian-tree.ts';
import { eventually } from '#test/harness/eventually.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const root = mkdtempSync(path.join(os.tmpdir(), 'isthmus-mover-'));
const at = (...parts: readonly string[]): string => path.join(root, ...parts);
const port = 18_730;
const children: ChildProcess[] = [];
let program = '';
/** Block devices in the place of folders, by the folder's name. */
const devices = new Map<string, string>();
let environment: Readonly<Record<string, string>> = {};

beforeAll(async () => {
  const debian = await ensureDebianTree({
    architecture: 'amd64',
    packages: ['rsync'],
    cache: cacheDir(),
    log: () => undefined,
  });
  const rsync = findInTree(debian, '/usr/bin/rsync')?.file ?? '';
  const libraries = debian.packages.flatMap(({ folder }) => [
    `${folder}/usr/lib/x86_64-linux-gnu`,
    `${folder}/lib/x86_64-linux-gnu`,
  ]);
  environment = { ISTHMUS_MOVER_RSYNC: rsync, ISTHMUS_MOVER_PORT: String(port), LD_LIBRARY_PATH: libraries.join(':') };
  const { files } = await bundleAgent(repositoryRoot, '0.0.0');
  program = at('mover.mjs');
  writeFileSync(program, files.find(({ name }) => name === 'mover.mjs')?.content ?? '');
  const now = Date.now();
  const [send, fetch, foreign] = [1, 2, 3].map(() => issueServingCertificate(['isthmus-mover'], now));
  for (const [name, own, peer] of [
    ['send', send, fetch],
    ['fetch', fetch, send],
    ['foreign', foreign, send],
  ] as const) {
    mkdirSync(at(name));
    writeFileSync(at(name, 'own.crt'), own?.certificate ?? '');
    writeFileSync(at(name, 'own.key'), own?.privateKey ?? '');
    writeFileSync(at(name, 'peer.crt'), peer?.certificate ?? '');
  }
}, 300_000);
beforeEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const name of ['from', 'to']) {
    rmSync(at(name), { recursive: true, force: true });
    mkdirSync(at(name));
  }
  rmSync(at('result'), { force: true });
});
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

interface Mover {
  readonly keys: string;
  readonly rsync?: string;
}

function mover(given: string | Mover, data: string, ...args: readonly string[]): ChildProcess {
  const { keys, rsync }: Mover = typeof given === 'string' ? { keys: given } : given;
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      ...environment,
      ...(rsync !== undefined && { ISTHMUS_MOVER_RSYNC: rsync }),
      ISTHMUS_MOVER_KEYS: at(keys),
      ISTHMUS_MOVER_DATA: devices.get(data) ?? `${at(data)}/`,
      ISTHMUS_MOVER_SOURCE: devices.get('from') ?? `${at('from')}/`,
      ISTHMUS_MOVER_RESULT: at('result'),
    },
  });
  children.push(child);
  return child;
}
const serve = (): ChildProcess => mover('send', 'from', 'serve');
const ended = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => {
    if (child.exitCode !== null) resolve(child.exitCode);
    else child.once('exit', resolve);
  });
const result = (): Record<string, unknown> => JSON.parse(readFileSync(at('result'), 'utf8')) as Record<string, unknown>;

function fill(file: string, megabytes: number): void {
  const handle = openSync(file, 'w');
  const block = Buffer.alloc(1_048_576);
  for (let i = 0; i < megabytes; i++) {
    block.fill(i + 1);
    writeSync(handle, block);
  }
  closeSync(handle);
}

test('a copy has the bytes, owners, modes, times, links and holes, and the comparison of checksums says so', async () => {
  fill(at('from', 'large'), 8);
  mkdirSync(at('from', 'folder'));
  writeFileSync(at('from', 'folder', 'small'), 'some text');
  linkSync(at('from', 'folder', 'small'), at('from', 'twin'));
  symlinkSync('folder/small', at('from', 'pointer'));
  writeFileSync(at('from', 'setuid'), 'x');
  execFileSync('chown', ['1234:5678', at('from', 'setuid')]);
  chmodSync(at('from', 'setuid'), 0o4755);
  execFileSync('truncate', ['-s', '64M', at('from', 'sparse')]);
  writeFileSync(at('to', 'stale'), 'is not in the source');
  serve();
  expect(await ended(mover('fetch', 'to', 'final', '127.0.0.1'))).toBe(0);
  expect(result()).toEqual({ ok: true, verified: { files: 5, bytes: 72 * 1_048_576 + 9 + 9 + 1 + 12 } });
  expect(execFileSync('diff', ['-r', at('from'), at('to')], { encoding: 'utf8' })).toBe('');
  const setuid = lstatSync(at('to', 'setuid'));
  expect([setuid.uid, setuid.gid, setuid.mode & 0o7777]).toEqual([1234, 5678, 0o4755]);
  expect(lstatSync(at('to', 'twin')).ino).toBe(lstatSync(at('to', 'folder', 'small')).ino);
  expect(lstatSync(at('to', 'sparse')).blocks).toBeLessThan(1_000);
  expect(existsSync(at('to', 'stale'))).toBe(false);
});

test('a byte that differs although size and time are equal is found', async () => {
  writeFileSync(at('from', 'file'), 'aaaa');
  writeFileSync(at('to', 'file'), 'aaba');
  for (const side of ['from', 'to']) utimesSync(at(side, 'file'), 1_000, 1_000);
  serve();
  expect(await ended(mover('fetch', 'to', 'final', '127.0.0.1'))).toBe(1);
  expect(result()).toMatchObject({ ok: false, error: expect.stringMatching(/both sides differ.*file/) });
});

describe('of a block device', () => {
  const bytesOf = (name: string): Buffer => readFileSync(devices.get(name) ?? '').subarray(0, size);
  // Its last block is shorter than the one that the larger device has there.
  const size = 32 * 1_048_576 + 4_096;
  beforeEach(() => {
    for (const [name, bytes] of Object.entries({ from: size, to: 48 * 1_048_576 })) {
      execFileSync('truncate', ['-s', String(bytes), at(`${name}.img`)]);
      const device = execFileSync('losetup', ['--find', '--show', at(`${name}.img`)], { encoding: 'utf8' });
      devices.set(name, device.trim());
    }
    fill(devices.get('from') ?? '', 20);
  });
  afterEach(() => {
    for (const device of devices.values()) execFileSync('losetup', ['--detach', device]);
    devices.clear();
    for (const name of ['from', 'to']) rmSync(at(`${name}.img`));
  });

  test('a larger one gets every byte, and later only what was changed', async () => {
    serve();
    expect(await ended(mover('fetch', 'to', 'live', '127.0.0.1'))).toBe(0);
    const handle = openSync(devices.get('from') ?? '', 'r+');
    writeSync(handle, 'written meanwhile', 5_000_000);
    closeSync(handle);
    expect(await ended(mover('fetch', 'to', 'final', '127.0.0.1'))).toBe(0);
    expect(result()).toEqual({ ok: true, verified: { files: 1, bytes: size } });
    expect(bytesOf('to').equals(bytesOf('from'))).toBe(true);
  });

  test('a smaller one is said to have no room', async () => {
    [devices.get('from'), devices.get('to')].forEach(
      (device, i) => void devices.set(i === 0 ? 'to' : 'from', device ?? ''),
    );
    fill(devices.get('from') ?? '', 48);
    serve();
    expect(await ended(mover('fetch', 'to', 'final', '127.0.0.1'))).toBe(1);
    expect(result()).toMatchObject({ ok: false, error: expect.stringMatching(/No space left on device/) });
  });

  test('one that is written to during the last pass is found to differ', async () => {
    serve();
    // Measured, copied, measured again: before the fourth call what was copied is no longer what is there.
    const late = `printf late | dd of=${devices.get('from')} bs=1 seek=1000 conv=notrunc status=none`;
    const calls = at('calls');
    const script = `#!/bin/sh\necho >> ${calls}\n[ $(wc -l < ${calls}) = 4 ] && ${late}\nexec ${environment.ISTHMUS_MOVER_RSYNC} "$@"\n`;
    writeFileSync(at('rsync'), script, { mode: 0o755 });
    const fetching = mover({ keys: 'fetch', rsync: at('rsync') }, 'to', 'final', '127.0.0.1');
    expect(await ended(fetching)).toBe(1);
    expect(result()).toMatchObject({
      ok: false,
      error: expect.stringMatching(/both sides differ.*bytes of the device/),
    });
  });
});

test('a limit is kept', async () => {
  fill(at('from', 'large'), 6);
  serve();
  const startedMs = Date.now();
  expect(await ended(mover('fetch', 'to', 'final', '127.0.0.1', String(2 * 1_048_576)))).toBe(0);
  // What rsync sends before it first waits is far less.
  expect(Date.now() - startedMs).toBeGreaterThan(2_000);
});

test('a target without room is said to have none, and the source is as it was', async () => {
  fill(at('from', 'large'), 8);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', at('to')]);
  try {
    serve();
    expect(await ended(mover('fetch', 'to', 'live', '127.0.0.1'))).toBe(1);
    expect(result()).toMatchObject({ ok: false, error: expect.stringMatching(/No space left on device/) });
    expect(lstatSync(at('from', 'large')).size).toBe(8 * 1_048_576);
  } finally {
    execFileSync('umount', [at('to')]);
  }
});

test('movers with other certificates are refused on both sides', async () => {
  writeFileSync(at('from', 'secret'), 'not for everyone');
  serve();
  const stranger = mover(
    'foreign',
    'to',
    'dial',
    '127.0.0.1',
    'rsync',
    '--server',
    '--sender',
    '-e.L',
    '.',
    `${at('from')}/`,
  );
  let said = '';
  stranger.stdout?.on('data', (piece: Buffer) => {
    said += piece.toString('latin1');
  });
  await ended(stranger);
  expect(said).toBe('');
  for (const child of children.splice(0)) child.kill('SIGKILL');
  mover('foreign', 'from', 'serve');
  const fetching = mover('fetch', 'to', 'dial', '127.0.0.1', 'rsync');
  let complaint = '';
  fetching.stderr?.on('data', (piece: Buffer) => {
    complaint += piece.toString();
  });
  await eventually(
    'an answer',
    async () => /ECONNREFUSED|another certificate/.test(complaint) || fetching.exitCode !== null,
  );
  expect(await ended(fetching)).toBe(255);
});

test('a mover that is killed in the middle is followed by one that goes on where it was', async () => {
  fill(at('from', 'large'), 200);
  serve();
  const first = mover('fetch', 'to', 'live', '127.0.0.1');
  await eventually(
    'some megabytes',
    async () => existsSync(at('to', 'large')) && lstatSync(at('to', 'large')).size > 8 * 1_048_576,
  );
  first.kill('SIGKILL');
  for (const child of children.splice(0)) child.kill('SIGKILL');
  serve();
  expect(await ended(mover('fetch', 'to', 'final', '127.0.0.1'))).toBe(0);
  expect(result()).toMatchObject({ ok: true, verified: { files: 1, bytes: 200 * 1_048_576 } });
});
