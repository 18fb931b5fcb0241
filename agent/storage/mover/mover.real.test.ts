/** Movers as processes of their own, with rsync as the image has it: what is copied, resumed, compared, and whom they talk to. */
import { type ChildProcess, execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { ended, type MoverCall, Movers } from '#test/harness/movers.ts';

let movers: Movers;
const at = (...parts: readonly string[]): string => movers.at(...parts);
/** Block devices in the place of folders, by the folder's name. */
const devices = new Map<string, string>();

beforeAll(async () => {
  movers = await Movers.start(18_730);
}, 300_000);
beforeEach(() => {
  movers.stop();
  for (const name of ['from', 'to']) {
    rmSync(at(name), { recursive: true, force: true });
    mkdirSync(at(name));
  }
  rmSync(at('result'), { force: true });
});
afterAll(() => movers.close());

interface Mover {
  readonly keys: MoverCall['keys'];
  readonly rsync?: string;
}

const dataOf = (name: string): string => devices.get(name) ?? `${at(name)}/`;
const mover = (given: MoverCall['keys'] | Mover, data: string, ...args: readonly string[]): ChildProcess =>
  movers.run({
    ...(typeof given === 'string' ? { keys: given } : given),
    data: dataOf(data),
    source: dataOf('from'),
    args,
  });
const serve = (): ChildProcess => mover('send', 'from', 'serve');
const result = (): Record<string, unknown> => movers.result();

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

test('a byte that differs although size and time are equal, as of a file that is mapped into memory, is copied', async () => {
  writeFileSync(at('from', 'file'), 'aaaa');
  writeFileSync(at('to', 'file'), 'aaba');
  for (const side of ['from', 'to']) utimesSync(at(side, 'file'), 1_000, 1_000);
  serve();
  expect(await ended(mover('fetch', 'to', 'final', '127.0.0.1'))).toBe(0);
  expect(result()).toEqual({ ok: true, verified: { files: 1, bytes: 4 } });
  expect(readFileSync(at('to', 'file'), 'utf8')).toBe('aaaa');
});

test('a page that is written in the second of the pass before is found by its time, and all files are read once only', async () => {
  writeFileSync(at('from', 'file'), 'aaaa');
  writeFileSync(at('to', 'file'), 'aaba');
  utimesSync(at('from', 'file'), 1_000, 1_000.6);
  utimesSync(at('to', 'file'), 1_000, 1_000.1);
  serve();
  writeFileSync(at('rsync'), `#!/bin/sh\necho "$*" >> ${at('calls')}\nexec ${movers.rsync} "$@"\n`, { mode: 0o755 });
  expect(await ended(mover({ keys: 'fetch', rsync: at('rsync') }, 'to', 'final', '127.0.0.1'))).toBe(0);
  expect(readFileSync(at('to', 'file'), 'utf8')).toBe('aaaa');
  const calls = readFileSync(at('calls'), 'utf8').trim().split('\n');
  expect(calls.filter((line) => line.includes('--checksum'))).toHaveLength(1);
});

test('a target that keeps times by the second only is equal in the end', async () => {
  writeFileSync(at('from', 'file'), 'aaaa');
  utimesSync(at('from', 'file'), 1_000, 1_000.6);
  execFileSync('truncate', ['-s', '16M', at('coarse.img')]);
  execFileSync('mkfs.ext4', ['-q', '-I', '128', at('coarse.img')], { stdio: 'pipe' });
  execFileSync('mount', ['-o', 'loop', at('coarse.img'), at('to')]);
  try {
    serve();
    expect(await ended(mover('fetch', 'to', 'final', '127.0.0.1'))).toBe(0);
    expect(result()).toEqual({ ok: true, verified: { files: 1, bytes: 4 } });
    expect(lstatSync(at('to', 'file')).mtimeMs).toBe(1_000_000);
  } finally {
    execFileSync('umount', [at('to')]);
    rmSync(at('coarse.img'));
  }
});

test('a file that is written to after each pass is found to differ', async () => {
  writeFileSync(at('from', 'file'), 'aaaa');
  serve();
  const script = `#!/bin/sh\n${movers.rsync} "$@"\ncode=$?\ndate +%N > ${at('from', 'file')}\nexit $code\n`;
  writeFileSync(at('rsync'), script, { mode: 0o755 });
  expect(await ended(mover({ keys: 'fetch', rsync: at('rsync') }, 'to', 'final', '127.0.0.1'))).toBe(1);
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
    const error = /^rsync ended with 11: .*No space left on device \(28\); rsync error: [^;]*$/;
    expect(result()).toEqual({ ok: false, error: expect.stringMatching(error) });
  });

  test.each([
    { where: 'at its beginning', write: 'printf late', offset: 1_000 },
    { where: 'in its last, short block', write: 'printf late', offset: size - 100 },
    // With what stands elsewhere: rsync finds that block there, and has nothing to send.
    { where: 'with a block that stands elsewhere', write: 'head -c 131072 /dev/zero', offset: 0 },
  ])('one that is written to $where after the last pass is found to differ', async ({ write, offset }) => {
    serve();
    const late = `${write} | dd of=${devices.get('from')} bs=131072 seek=${offset} oflag=seek_bytes conv=notrunc status=none`;
    const calls = at('calls');
    rmSync(calls, { force: true });
    // It measures, then it copies.
    const script = `#!/bin/sh\necho >> ${calls}\n${movers.rsync} "$@"\ncode=$?\n[ $(wc -l < ${calls}) = 2 ] && ${late}\nexit $code\n`;
    writeFileSync(at('rsync'), script, { mode: 0o755 });
    const fetching = mover({ keys: 'fetch', rsync: at('rsync') }, 'to', 'final', '127.0.0.1');
    expect(await ended(fetching)).toBe(1);
    const error = expect.stringMatching(/both sides differ.*checksums of the \d+ bytes of the device/);
    expect(result()).toMatchObject({ ok: false, error });
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
    const error = /^rsync ended with 11: .*large": No space left on device \(28\); rsync error: [^;]*$/;
    expect(result()).toEqual({ ok: false, error: expect.stringMatching(error) });
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
  movers.stop();
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
  movers.stop();
  serve();
  expect(await ended(mover('fetch', 'to', 'final', '127.0.0.1'))).toBe(0);
  expect(result()).toMatchObject({ ok: true, verified: { files: 1, bytes: 200 * 1_048_576 } });
});
