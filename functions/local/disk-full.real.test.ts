/** A broker on a disk that is really full: a small file system in memory, filled up and emptied again. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Log } from '#shared/ports/log.ts';
import { type Broker, startBroker } from './broker.ts';
import { send } from './scripted-agent.ts';

const disk = mkdtempSync(path.join(tmpdir(), 'isthmus-disk-'));
const filler = path.join(disk, 'filler');
const said: string[] = [];
const log: Log = {
  with: () => log,
  debug() {},
  info: (message) => void said.push(message),
  warn() {},
  error: (message, _error, fields) => void said.push(`${message}: ${fields?.code}`),
};
let broker: Broker | undefined;

beforeAll(async () => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk]);
  broker = await startBroker({ dataDir: path.join(disk, 'data'), listen: '127.0.0.1:0', log, version: '0' });
});
afterAll(async () => {
  await broker?.close();
  execFileSync('umount', [disk]);
  rmSync(disk, { recursive: true, force: true });
});

async function ask(method: string, pathname: string, body?: unknown) {
  const { url = '', caPem = '', adminKey } = broker ?? {};
  const headers = {
    authorization: `Bearer ${adminKey}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const answer = await send({
    method,
    url: url + pathname,
    ca: caPem,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return [answer.status, answer.body.code] as const;
}

/** Every byte that is left. */
function fill(): void {
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, Buffer.alloc(bavail * bsize));
}

test('a full disk is named in answer, readiness and log, reading goes on, and all is well when there is room', async () => {
  const make = () => ask('POST', '/v1/keys', { name: 'x'.repeat(100), role: 'viewer' });
  expect(await make()).toEqual([201, undefined]);
  fill();
  // What the log of the database has allocated takes some more changes.
  let last = await make();
  for (let i = 0; i < 500 && last[0] === 201; i += 1) last = await make();
  expect(last).toEqual([507, 'storage_full']);
  expect(await ask('GET', '/ready')).toEqual([507, 'storage_full']);
  expect(await ask('GET', '/v1/keys')).toEqual([200, undefined]);
  expect(said).toContain('the database takes no changes: storage_full');
  rmSync(filler);
  expect(await make()).toEqual([201, undefined]);
  expect(await ask('GET', '/ready')).toEqual([200, undefined]);
  expect(said).toContain('the database takes changes again');
});
