/** The authority of the front door as other implementations read what it writes. */
import { createPublicKey, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { lifetimeOf } from './certificate.ts';
import { generateClusterKeys } from './cluster-keys.ts';
import { createDoorAuthority, isAuthority, issueDoorClient, issueDoorServing } from './door-certificates.ts';

const now = Date.UTC(2026, 0, 1);
const dayMs = 24 * 3600_000;
const authority = createDoorAuthority(now);
const ca = new X509Certificate(authority.certificate);
const key = createPublicKey(generateClusterKeys().publicKey);
const subject = { commonName: 'rome', organization: 'liqo.io' };

test('the door and its consumers have certificates of the authority, each for one use only', () => {
  const serving = issueDoorServing(authority, ['10.71.0.9', '10.9.0.9'], now);
  const door = new X509Certificate(serving.certificate);
  const client = new X509Certificate(issueDoorClient(authority, subject, key, { now, seconds: 3600 }));
  for (const one of [door, client]) {
    expect(one.checkIssued(ca) && one.verify(ca.publicKey)).toBe(true);
    expect(one.ca).toBe(false);
  }
  expect(ca.ca).toBe(true);
  expect([door.keyUsage, client.keyUsage]).toEqual([['1.3.6.1.5.5.7.3.1'], ['1.3.6.1.5.5.7.3.2']]);
  expect([door.checkIP('10.71.0.9'), door.checkIP('10.9.0.9'), door.checkIP('10.9.0.8')]).toEqual([
    '10.71.0.9',
    '10.9.0.9',
    undefined,
  ]);
  expect(client.subject.split('\n').sort()).toEqual(['CN=rome', 'O=liqo.io']);
  expect(client.publicKey.equals(key)).toBe(true);
});

test('nothing outlives the authority', () => {
  const late = now + 3649 * dayMs;
  const client = issueDoorClient(authority, subject, key, { now: late, seconds: 7 * 24 * 3600 });
  const serving = issueDoorServing(authority, ['10.71.0.9'], late);
  for (const pem of [client, serving.certificate])
    expect(lifetimeOf(pem).notAfterMs).toBe(lifetimeOf(authority.certificate).notAfterMs);
});

test('an authority is taken when certificate and key belong together and a year is left', () => {
  expect(isAuthority(authority, now)).toBe(true);
  expect(isAuthority(authority, now + 3300 * dayMs)).toBe(false);
  expect(isAuthority({ ...authority, privateKey: createDoorAuthority(now).privateKey }, now)).toBe(false);
  expect(isAuthority({ ...authority, certificate: 'garbage' }, now)).toBe(false);
  expect(isAuthority(issueDoorServing(authority, ['10.71.0.9'], now), now)).toBe(false);
  expect(isAuthority({}, now)).toBe(false);
});
