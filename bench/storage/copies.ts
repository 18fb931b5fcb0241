/**
 * One copy of 1 GiB between two mover processes over loopback with their TLS, while 5 MB/s are written until the freeze; before it, a bare rsync daemon
 * with the same options copies the same folder.
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ended, type Movers, type Volumes } from '#test/harness/movers.ts';

const mebibyte = 1_048_576;
const files = 64;
const fileBytes = 16 * mebibyte;
/** What the application writes in a second, into a file of its own and over old data in turn. */
const writtenBytes = 5_000_000;
const writesPerSecond = 10;
/** Of the mover that sends; the bare daemon has the next one. */
export const port = 18_732;
const bareStartMs = 10_000;

/** Rates in MiB/s. */
export interface Sample {
  readonly copied: number;
  readonly bare: number;
  readonly passes: number;
  readonly liveSeconds: number;
  readonly freezeSeconds: number;
  readonly writtenBytes: number;
}

function fill(folder: string): void {
  const bytes = Buffer.alloc(fileBytes);
  for (let i = 0; i < files; i++) writeFileSync(`${folder}${i}`, randomFillSync(bytes));
  execFileSync('sync');
}

/** Writes until the returned function is called, which tells how much it was. */
function application(folder: string): () => Promise<number> {
  const bytes = randomFillSync(Buffer.alloc(writtenBytes / writesPerSecond));
  const [log, old] = [openSync(`${folder}log`, 'w'), openSync(`${folder}0`, 'r+')];
  const startedMs = performance.now();
  let [writes, isOver] = [0, false];
  const work = async (): Promise<number> => {
    while (!isOver) {
      // In an endless loop over the 16 MiB of the old file, as a database does with its pages.
      if (writes % 2 === 0) writeSync(log, bytes);
      else writeSync(old, bytes, 0, bytes.length, (writes * bytes.length) % (fileBytes - bytes.length));
      writes += 1;
      await delay(Math.max(0, startedMs + (writes * 1_000) / writesPerSecond - performance.now()));
    }
    for (const file of [log, old]) {
      fsyncSync(file);
      closeSync(file);
    }
    return writes * bytes.length;
  };
  const done = work();
  return () => {
    isOver = true;
    return done;
  };
}

/** Bytes in a second of its first pass, as it reports them, and the result of the whole. */
async function live(movers: Movers, { from, to }: Volumes) {
  rmSync(movers.at('result'), { force: true });
  const child = movers.run({ keys: 'fetch', data: to, source: from, args: ['live', '127.0.0.1'] });
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
    output += piece;
  });
  const code = await ended(child);
  if (code !== 0) throw new Error(`the live copy ended with ${code}: ${output}`);
  const reports = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly pass?: number; readonly rate?: number });
  const result = movers.result();
  if (result.ok !== true) throw new Error(`the live copy failed: ${JSON.stringify(result)}`);
  return { rate: reports.filter(({ pass }) => pass === 1).at(-1)?.rate ?? 0, passes: Number(result.passes) };
}

const answers = (): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port + 1, '127.0.0.1', () => socket.end(() => resolve(true)));
    socket.on('error', () => resolve(false));
  });

/** Seconds of the same copy by rsync alone, over TCP and without TLS. */
async function bare(movers: Movers, { from, to }: Volumes): Promise<number> {
  const config = movers.at('rsyncd.conf');
  writeFileSync(config, `use chroot = no\n[volume]\npath = ${from}\nread only = yes\nuid = 0\ngid = 0\n`);
  const env = { ...process.env, ...movers.libraries };
  const args = ['--daemon', '--no-detach', '--address=127.0.0.1', `--port=${port + 1}`, `--config=${config}`];
  const daemon = spawn(movers.rsync, args, { env, stdio: 'ignore' });
  try {
    const deadline = performance.now() + bareStartMs;
    while (!(await answers())) {
      if (performance.now() > deadline) throw new Error('the rsync daemon does not answer');
      await delay(50);
    }
    const options = [
      '-aHAXS',
      '--modify-window=-1',
      '--numeric-ids',
      '--inplace',
      '--no-whole-file',
      '--no-inc-recursive',
      '--fsync',
    ];
    const startedMs = performance.now();
    execFileSync(movers.rsync, [...options, `rsync://127.0.0.1:${port + 1}/volume/`, to], { env, stdio: 'pipe' });
    return (performance.now() - startedMs) / 1_000;
  } finally {
    daemon.kill('SIGKILL');
  }
}

export async function sample(movers: Movers): Promise<Sample> {
  const volumes = { from: `${movers.at('from')}/`, to: `${movers.at('to')}/` };
  const empty = (folder: string): void => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
  };
  empty(volumes.from);
  fill(volumes.from);
  empty(volumes.to);
  const bareSeconds = await bare(movers, volumes);
  empty(volumes.to);
  execFileSync('sync');
  movers.serve(volumes);
  try {
    const stop = application(volumes.from);
    const startedMs = performance.now();
    const { rate, passes } = await live(movers, volumes);
    const liveSeconds = (performance.now() - startedMs) / 1_000;
    const written = await stop();
    const frozenMs = performance.now();
    const result = await movers.fetch(volumes, 'final');
    if (result.ok !== true) throw new Error(`the last pass failed: ${JSON.stringify(result)}`);
    return {
      copied: rate / mebibyte,
      bare: (files * fileBytes) / mebibyte / bareSeconds,
      passes,
      liveSeconds,
      freezeSeconds: (performance.now() - frozenMs) / 1_000,
      writtenBytes: written,
    };
  } finally {
    movers.stop();
  }
}
