/** Which version of its words a cluster tells a peer. */
import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import { readAnnouncement } from './announcement.ts';
import { createAnnouncer } from './announcer.ts';

const { privateKey } = generateKeyPairSync('ed25519');
const facts = { apiServerUrl: 'https://192.0.2.1:6443', apiServerCa: 'CA' } as ClusterFacts;

test('the same words are signed again after a day: a peer follows that took a version from a clock that was ahead', () => {
  let now = 1_000;
  const clock = { ...systemClock, now: () => now };
  const announce = createAnnouncer({ clusterId: 'milan', tenant: 'acme', privateKey, clock });
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
