/** For vitest: a pool of API servers for all files of a run, behind a socket that their processes find by the environment. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { poolVariable } from './lease.ts';
import { createApiServerPool, describeServer } from './serving.ts';
import { servePool } from './socket.ts';
import { guardStackTraces } from './stack-traces.ts';

export default async function setUp(): Promise<() => Promise<void>> {
  guardStackTraces();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'isthmus-pool-'));
  const file = path.join(folder, 'pool.sock');
  const pool = createApiServerPool((line) => console.error(line));
  const listener = await servePool(file, pool, describeServer);
  process.env[poolVariable] = file;
  return async () => {
    delete process.env[poolVariable];
    listener.close();
    const { started, leased, discarded } = pool.counts;
    await pool.close();
    await rm(folder, { recursive: true, force: true });
    if (leased > 0)
      console.log(
        `API servers of the pool: ${started} started for ${leased} leases, ${discarded} ended because they could not be cleaned`,
      );
  };
}
