/** Processes that do nothing but take processor time. */
import { spawn } from 'node:child_process';

/** Each takes one processor, as nice as everything else; they end with the returned function, or with this process. */
export function startBusyLoops(count: number): () => void {
  // It looks once a second whether its parent is still there: a killed run leaves no loop behind.
  const script =
    'const p = process.ppid; for (;;) { const e = Date.now() + 1000; while (Date.now() < e); if (process.ppid !== p) process.exit(); }';
  const loops = Array.from({ length: count }, () => spawn(process.execPath, ['-e', script], { stdio: 'ignore' }));
  const stop = (): void => {
    for (const loop of loops) loop.kill('SIGKILL');
    process.off('exit', stop);
  };
  process.once('exit', stop);
  return stop;
}
