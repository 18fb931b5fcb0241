/** The running broker keeps to its OpenAPI document: schemathesis makes requests from the document alone, valid and not, and judges the answers. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensurePythonTool, type PythonTool, schemathesis } from '#scripts/setup/python-tool.ts';
import { silentLog } from '#shared/ports/log.ts';
import { run } from '#test/harness/program.ts';

const seed = process.env.ISTHMUS_SEED ?? '20261121';
const installMs = 900_000;
let dir = '';
let tool: PythonTool;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-conformance-'));
  tool = await ensurePythonTool(schemathesis, cacheDir(), console.log);
}, installMs);
afterAll(() => rm(dir, { recursive: true, force: true }));

interface Caller {
  readonly who: string;
  readonly key: (broker: Broker) => string | undefined;
  readonly paths: readonly string[];
}

/** What replaces the caller's own key or takes its tenant away would turn the rest of the run into 401s; other tests have it. */
const suicidal = '^/v1/(keys/.*/rotate|tenant/deletion)';

test.each<Caller>([
  {
    who: 'an admin of a tenant',
    key: ({ adminKey }) => adminKey,
    paths: ['--exclude-path-regex', `${suicidal}|^/v1/agent/`],
  },
  {
    who: 'the operator',
    key: ({ operatorKey }) => operatorKey,
    paths: ['--include-path-regex', '^/v1/(tenants|health)'],
  },
])('every answer to $who is one that the OpenAPI document has', async ({ who, key, paths }) => {
  const broker = await startBroker({
    dataDir: path.join(dir, who.replaceAll(' ', '-')),
    listen: '127.0.0.1:0',
    log: silentLog,
    // `?wait=25` is valid, and too long for this test.
    longestWaitSeconds: 0.1,
    version: '0.1.0',
    limits: { clusters: 1e6, peerings: 1e6, requestsPerMinute: 1e6, eventsPerMinute: 1e6 },
  });
  try {
    const args = ['run', `${broker.url}/v1/openapi.json`, `--tls-verify=${broker.caFile}`, '--seed', seed];
    const amount = ['--max-examples', '12', '--generation-database', 'none', ...paths];
    const { code, stdout, stderr } = await run(
      'python3',
      [tool.program, ...args, ...amount, '-H', `Authorization: Bearer ${key(broker)}`],
      { cwd: dir, env: tool.env, timeoutMs: 1_680_000 },
    );
    expect(code, `seed ${seed}\n${stdout.slice(-12_000)}${stderr}`).toBe(0);
    expect(Number(/(\d+) generated/.exec(stdout)?.[1])).toBeGreaterThan(100);
  } finally {
    await broker.close();
  }
});
