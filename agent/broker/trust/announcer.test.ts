/** Which version of its words a cluster tells a peer. */
import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import { readAnnouncement } from './announcement.ts';
import { createAnnouncer } from './announcer.ts';

const { privateKey } = generateKeyPairSync('ed25519');
const facts = { apiServerUrl: 'https://192.0.2.1:6443', apiServerCa: 'CA' } as ClusterFacts;

test('the same words are signed again after a day: a peer follows that took a version from a clock that was ahead', () => {
  let now = 1_000;
  const clock = { ...systemClock, now: () => now };
  const announce = createAnnouncer({ clusterId: 'milan', tenant: 'acme', privateKey, clock, log: silentLog });
  const at = () =>
    readAnnouncement(announce('rome', { facts, lock: undefined, wireGuardKey: undefined }) ?? '')?.claims.at;
  expect(at()).toBe(1_000);
  now += 24 * 3_600_000 - 1;
  expect(at()).toBe(1_000);
  now += 1;
  expect(at()).toBe(now);
  now -= 500;
  expect(at()).toBe(now + 500);
});

test('an announcement that is longer than brokers carry is not sent, and the log says so once', () => {
  const warned: unknown[] = [];
  const log: Log = { ...silentLog, warn: (_message, fields) => warned.push(fields) };
  const announce = createAnnouncer({ clusterId: 'milan', tenant: 'acme', privateKey, clock: systemClock, log });
  const podCidrs = Array.from({ length: 600 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`);
  const wide = { ...facts, network: { podCidrs, externalCidrs: [] } } as unknown as ClusterFacts;
  const say = () => announce('rome', { facts: wide, lock: undefined, wireGuardKey: undefined });
  expect([say(), say()]).toEqual([undefined, undefined]);
  expect(warned).toEqual([{ peer: 'rome', characters: expect.any(Number), accepted: 8_192 }]);
});
