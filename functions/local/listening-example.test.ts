/** The program of docs/api.md, as it stands there. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { silentLog } from '#shared/ports/log.ts';
import { eventually } from '#test/harness/eventually.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type Broker, startBroker } from './broker.ts';
import { send } from './scripted-agent.ts';

let dir = '';
let broker: Broker | undefined;
let portal: ChildProcess | undefined;
afterEach(async () => {
  portal?.kill('SIGKILL');
  await broker?.close();
  await rm(dir, { recursive: true, force: true });
});

async function program(): Promise<string> {
  const page = await readFile(path.join(repositoryRoot, 'docs', 'api.md'), 'utf8');
  const block = /^( {4}import WebSocket from 'ws';\n(?: {4}.*\n|\n)*)/m.exec(page)?.[1];
  if (block === undefined) throw new Error('docs/api.md has no program that listens');
  return block.replaceAll(/^ {4}/gm, '');
}

test('the program of docs/api.md prints what happens while it listens, and goes on after the broker was restarted', async () => {
  // In the repository, where `ws` is found.
  const build = path.join(repositoryRoot, '.build');
  await mkdir(build, { recursive: true });
  dir = await mkdtemp(path.join(build, 'listen-'));
  const file = path.join(dir, 'listen.mjs');
  await writeFile(file, await program());
  const options = { dataDir: path.join(dir, 'data'), log: silentLog, version: '0.1.0' };
  const first = await startBroker({ ...options, listen: '127.0.0.1:0' });
  broker = first;
  const key = first.adminKey ?? '';
  let printed = '';
  const child = spawn(process.execPath, [file], {
    env: { PATH: process.env.PATH, BROKER: first.url, KEY: key, NODE_EXTRA_CA_CERTS: first.caFile },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  portal = child;
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  const join = (cluster: string) =>
    send({
      method: 'POST',
      url: `${first.url}/v1/join-tokens`,
      ca: first.caPem,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ cluster }),
    });
  let n = 0;
  // It begins where the feed ends when it is connected.
  await eventually('the first line', async () => {
    n += 1;
    expect((await join(`rome-${n}`)).status).toBe(201);
    return printed.includes('dev.isthmus.cluster.join-token-created.v1 cluster/rome-');
  });
  await first.close();
  broker = await startBroker({ ...options, listen: `127.0.0.1:${first.port}` });
  expect((await join('milan')).status).toBe(201);
  await eventually('what happened before it came back', () => printed.includes('cluster/milan'));
});
