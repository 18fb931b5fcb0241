/** For tests: `isthmus broker serve` as a process of its own, which can be killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import * as z from 'zod';

const Started = z.object({
  url: z.string(),
  caHash: z.string(),
  caFile: z.string(),
  tenant: z.string(),
  adminKey: z.string().optional(),
  operatorKey: z.string().optional(),
});

export interface BrokerChild extends z.infer<typeof Started> {
  /** Resolves when the process is gone. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null>;
}

const program = path.resolve(import.meta.dirname, '../bin/isthmus.mjs');

export async function serveBroker(dataDir: string, listen: string, more: readonly string[] = []): Promise<BrokerChild> {
  const args = [
    program,
    'broker',
    'serve',
    '--data',
    dataDir,
    '--listen',
    listen,
    '-o',
    'json',
    '--log-level',
    'warn',
    ...more,
  ];
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const errors: Buffer[] = [];
  child.stderr?.on('data', (chunk: Buffer) => errors.push(chunk));
  if (child.stdout === null) throw new Error('no output to read');
  const line = once(createInterface(child.stdout), 'line').then(([text]) => String(text));
  const early = exited.then((code) => {
    throw new Error(`the broker ended with ${code}: ${Buffer.concat(errors).toString('utf8')}`);
  });
  early.catch(() => undefined);
  const started = Started.parse(JSON.parse(await Promise.race([line, early])));
  return {
    ...started,
    async end(signal) {
      child.kill(signal);
      return exited;
    },
  };
}
