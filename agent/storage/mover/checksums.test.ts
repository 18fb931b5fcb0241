/** The comparison of devices ends: when one side fails, falls silent or goes, nothing reads on. `/dev/zero` is a device without an end. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { Server } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { issueServingCertificate } from '../../pki/webhook-certificate.ts';
import { type PullDeps, pullFinal } from './pull.ts';
import { askChecksum, type Identity, serveVolume } from './transport.ts';

/** Is looked at for every piece that is read. */
class CountingClock extends ManualClock {
  looks = 0;
  override now(): number {
    this.looks++;
    return super.now();
  }
}

let folder: string;
let server: Server | undefined;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-checksums-'));
  // As rsync that has copied a device of 1 PiB.
  writeFileSync(path.join(folder, 'rsync'), '#!/bin/sh\necho "Total file size: 1125899906842624 bytes"\n', {
    mode: 0o755,
  });
});
afterEach(() => void server?.close());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const [one, other] = [1, 2].map(() => issueServingCertificate(['isthmus-mover'], Date.now()));
const identity = (own: typeof one, peer: typeof one): Identity => ({
  certificate: own?.certificate ?? '',
  privateKey: own?.privateKey ?? '',
  peer: peer?.certificate ?? '',
});
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function standsStill(clock: CountingClock): Promise<void> {
  await eventually('nothing to be read any more', async () => {
    // A sender has something to tell, and learns so that its caller has gone.
    clock.advance(1_000);
    await pause(100);
    const before = clock.looks;
    await pause(100);
    return clock.looks === before;
  });
}

function deps(to: string, clock: CountingClock, checksum: PullDeps['checksum']): PullDeps {
  const way = { program: [], host: 'peer', from: '/dev/volume', to, isDevice: true };
  const rsync = path.join(folder, 'rsync');
  return { clock, way, rsync, greet: async () => undefined, checksum, report: () => undefined };
}

async function sender(clock: ManualClock): Promise<{ host: string; port: number }> {
  server = await serveVolume(identity(one, other), { port: 0, source: '/dev/zero', clock });
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

test('when the other side cannot say its checksum, the copy is read no more', async () => {
  const clock = new CountingClock();
  const failing = async (): Promise<never> => {
    await pause(5);
    throw new Error('it broke');
  };
  const result = await pullFinal(deps('/dev/zero', clock, failing));
  expect(result).toEqual({ ok: false, error: expect.stringMatching(/it broke, after 10 interruptions/) });
  await standsStill(clock);
});

test('a copy that cannot be read is the result, and the other side is not asked any longer', async () => {
  let asked: AbortSignal | undefined;
  const endless = (signal: AbortSignal): Promise<never> => {
    asked = signal;
    return new Promise(() => undefined);
  };
  // A folder is opened, and cannot be read.
  const result = await pullFinal(deps(folder, new CountingClock(), endless));
  expect(result).toEqual({ ok: false, error: expect.stringMatching(/cannot be read: .*EISDIR/) });
  expect(asked?.aborted).toBe(true);
});

test('the sender reads no more when its caller has gone', async () => {
  const clock = new CountingClock();
  const there = await sender(clock);
  const caller = new AbortController();
  const asking = askChecksum(identity(other, one), { ...there, clock: new ManualClock() }, caller.signal);
  asking.catch(() => undefined);
  await eventually('some pieces to be read', async () => clock.looks > 10);
  caller.abort();
  await expect(asking).rejects.toThrow();
  await standsStill(clock);
});

test('a sender that tells nothing for a minute is said to have gone silent', async () => {
  // Stands still, so that the sender has nothing to tell.
  const senders = new CountingClock();
  const there = await sender(senders);
  const clock = new ManualClock();
  const asking = askChecksum(identity(other, one), { ...there, clock }, new AbortController().signal);
  const failed = expect(asking).rejects.toThrow(/went silent/);
  await eventually('the wait', async () => clock.sleeping > 0);
  clock.advance(60_000);
  await failed;
  await standsStill(senders);
});
