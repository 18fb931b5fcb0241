/** One holder at a time across processes, by the kernel's file lock: it is released when the holder ends, however it ends. */
import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';

/** Waits without a limit until `file` is free, then runs `work` while holding it. Linux only (util-linux `flock`). */
export async function withFileLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  await mkdir(path.dirname(file), { recursive: true });
  // The child holds the lock until its standard input closes, which the kernel does for us when this process dies.
  const holder = spawn('flock', ['--exclusive', file, 'sh', '-c', 'echo held; exec cat >/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => holder.once('close', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    holder.once('error', (cause) =>
      reject(new AppError('host_unsupported', 'the program flock is missing: install util-linux', { cause })),
    );
    holder.stdout.once('data', () => resolve());
    holder.once('exit', () => reject(new AppError('command_failed', `could not lock ${file}`)));
  });
  try {
    return await work();
  } finally {
    holder.stdin.end();
    await ended;
  }
}
