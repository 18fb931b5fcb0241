import { createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { controlPlaneSubject } from '#agent/model/peer-user.ts';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { fingerprintOf, generateClusterKeys, signSuccession } from '#agent/pki/cluster-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { validateKey } from './known-key.ts';

const [former, next, stranger] = [generateClusterKeys(), generateClusterKeys(), generateClusterKeys()];
const stored = toBase64(buildCertificateRequest(controlPlaneSubject('rome'), former.privateKey));
const tenant = (publicKey: string, annotations: Record<string, string> = {}): Tenant => ({
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'Tenant',
  metadata: { name: 'rome', namespace: 'liqo-tenant-rome', annotations },
  spec: { clusterID: 'rome', authzPolicy: 'KeysExchange', tenantCondition: 'Active', publicKey: toBase64(publicKey) },
});
const handedOver = (by: typeof former, to: typeof former) => ({
  [isthmusAnnotation.keySuccession]: toBase64(signSuccession(by, to)),
});
const accept = (keys: typeof former) => ({
  [isthmusAnnotation.acceptKey]: fingerprintOf(createPublicKey(keys.publicKey)),
});

test.each([
  { what: 'a consumer without a certificate', one: tenant(next.publicKey), csr: undefined, verdict: { ok: true } },
  {
    what: 'a consumer with the key it was certified with',
    one: tenant(former.publicKey),
    csr: stored,
    verdict: { ok: true },
  },
  {
    what: 'a new key that the former one signs',
    one: tenant(next.publicKey, handedOver(former, next)),
    csr: stored,
    verdict: { ok: true, by: 'succession' },
  },
  {
    what: 'a new key that an administrator here accepts',
    one: tenant(next.publicKey, accept(next)),
    csr: stored,
    verdict: { ok: true, by: 'consent' },
  },
])('$what is known', ({ one, csr, verdict }) => {
  expect(validateKey(one, csr)).toEqual(verdict);
});

test.each([
  { what: 'without any approval', annotations: {} },
  { what: 'that signs for itself', annotations: handedOver(next, next) },
  { what: 'with the signature of a third key', annotations: handedOver(stranger, next) },
  { what: 'with a signature for another key', annotations: handedOver(former, stranger) },
  { what: 'with consent to another key', annotations: accept(stranger) },
  { what: 'with a signature that is none', annotations: { [isthmusAnnotation.keySuccession]: 'x' } },
])('a key $what is refused, with both fingerprints and what to do', ({ annotations }) => {
  const verdict = validateKey(tenant(next.publicKey, annotations), stored);
  expect(verdict).toMatchObject({ ok: false, reason: 'PeerKeyChanged' });
  const { message } = verdict as { message: string };
  for (const keys of [former, next]) expect(message).toContain(fingerprintOf(createPublicKey(keys.publicKey)));
  expect(message).toContain('kubectl annotate tenant -n liqo-tenant-rome rome isthmus.dev/accept-key=sha256:');
});
