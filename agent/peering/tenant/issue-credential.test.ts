/** What an identity keeps while its consumer changes its key: what it was given last and can still use. */
import { expect, test } from 'vitest';
import { toBase64 } from '#agent/pki/pem.ts';
import type { Cache } from '#kube/model/types.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { buildDoorSecret } from '../credentials/front-door.ts';
import { heldCredential } from './issue-credential.ts';
import { buildCertificateSecret, type Holder } from './issued-certificate.ts';

const now = Date.UTC(2026, 0, 1);
const [csr, ca, byDoor, bySigner] = ['request', 'ca', 'by the door', 'by the signer'].map(toBase64) as [
  string,
  string,
  string,
  string,
];
const holder: Holder = {
  ...{ consumer: 'rome', namespace: 'liqo-tenant-rome', slice: 'milan' },
  owner: { apiVersion: 'v1', kind: 'Tenant', name: 'rome', uid: 'u' },
};
const url = 'https://10.71.0.9:8119';
const door = (hoursAgo: number, apiServer = url) =>
  buildDoorSecret(holder, {
    csr,
    certificate: byDoor,
    issuedAtMs: now - hoursAgo * 3_600_000,
    apiServer,
    ca,
  }) as Secret;
const signed = (hoursAgo: number) =>
  buildCertificateSecret(holder, csr, bySigner, now - hoursAgo * 3_600_000) as Secret;
const atDoor = { 'isthmus.dev/front-door': 'true' };
const tenant = (annotations: Record<string, string>): Tenant =>
  ({
    metadata: { name: 'rome', namespace: holder.namespace, annotations },
    spec: { clusterID: 'rome', proxyURL: 'http://10.71.0.9:8118' },
  }) as unknown as Tenant;

function held(secrets: readonly Secret[], annotations: Record<string, string>, asked = csr, isValid = () => true) {
  const cache = { get: ({ name }: { name: string }) => secrets.find(({ metadata }) => metadata.name === name) };
  return heldCredential(cache as unknown as Cache<Secret>, tenant(annotations), holder, asked, isValid, now)?.signedCRT;
}

test.each([
  ['the door, which came last', [signed(9), door(1)], atDoor, byDoor],
  ['the signer, after a door that is shut', [door(9), signed(1)], {}, bySigner],
  ['the signer, before a door that is shut', [signed(9), door(1)], {}, bySigner],
  ['nothing, when the door is shut and nothing else was given', [door(1)], {}, undefined],
  ['nothing, when the door was told by another address', [door(1, 'https://10.72.0.9:8119')], atDoor, undefined],
] as const)('while a consumer changes its key, it keeps the certificate of %s', (_, secrets, annotations, expected) => {
  expect(held(secrets, annotations)).toBe(expected);
});

test('while a consumer changes its key, it keeps nothing that was given for another request, or has ended', () => {
  expect(held([door(1), signed(2)], atDoor, toBase64('another'))).toBeUndefined();
  expect(held([door(1), signed(2)], atDoor, csr, () => false)).toBeUndefined();
});
