/** A real kube-scheduler beside an API server of a test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { schedulerArgs } from '#test/testbed/control-plane.ts';
import type { ApiServer } from './kube-apiserver.ts';

export interface Scheduler {
  stop(): Promise<void>;
}

/** As the administrator of the server. Its log is in the server's folder. */
export function startScheduler({ kubebox, kubeconfigPath, dir }: ApiServer): Scheduler {
  const log = openSync(path.join(dir, 'logs', 'kube-scheduler.log'), 'a');
  const child: ChildProcess = spawn(kubebox, schedulerArgs(kubeconfigPath), {
    stdio: ['ignore', log, log],
    cwd: dir,
    // A test that is killed takes its scheduler along.
    env: { ...process.env, KUBEBOX_DIE_WITH_PARENT: '1' },
  });
  closeSync(log);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
