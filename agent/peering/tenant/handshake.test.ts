/** What proves a Tenant and what does not. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { controlPlaneSubject } from '#agent/model/peer-user.ts';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { generateClusterKeys, signWith } from '#agent/pki/cluster-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import type { RoleBinding } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { signedNonceData } from '../nonce/controllers.ts';
import { checkHandshake } from './handshake.ts';
import { foreignGrant } from './impersonation.ts';

const rome = generateClusterKeys();
const nonce = toBase64(toBase64('n'.repeat(64)));
const tenantOf = (spec: Partial<Tenant['spec']>): Tenant => ({
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'Tenant',
  metadata: { name: 'rome', namespace: 'liqo-tenant-rome' },
  spec: { clusterID: 'rome', authzPolicy: 'KeysExchange', tenantCondition: 'Active', ...spec },
});
const signed = signedNonceData({ nonce }, 'rome', rome) ?? {};
const good = { publicKey: signed.publicKey ?? '', csr: signed.csr ?? '', signature: signed.signedNonce ?? '' };

describe('a handshake', () => {
  test('is what the nonce signer of the consumer produces', () => {
    expect(checkHandshake(tenantOf(good), nonce)).toMatchObject({ ok: true });
  });

  test('stays as it is once signed, and is signed again for another key or nonce', () => {
    expect(signedNonceData({ nonce, ...signed }, 'rome', rome)).toBeUndefined();
    expect(signedNonceData({ nonce, ...signed }, 'rome', generateClusterKeys())).toBeDefined();
    expect(signedNonceData({ ...signed, nonce: toBase64(toBase64('o'.repeat(64))) }, 'rome', rome)).toBeDefined();
  });

  const stranger = generateClusterKeys();
  test.each<[string, Partial<Tenant['spec']>, string, RegExp]>([
    [
      'a missing signature',
      { publicKey: good.publicKey, csr: good.csr },
      'IncompleteTenant',
      /spec\.signature is missing/,
    ],
    [
      'the signature of another key',
      { ...good, signature: toBase64(signWith(stranger.privateKey, Buffer.from(nonce, 'base64'))) },
      'SignatureVerificationFailed',
      /nonce/,
    ],
    [
      'another public key',
      { ...good, publicKey: toBase64(stranger.publicKey) },
      'SignatureVerificationFailed',
      /spec\.publicKey/,
    ],
    [
      'a request for another user',
      { ...good, csr: toBase64(buildCertificateRequest(controlPlaneSubject('turin'), rome.privateKey)) },
      'InvalidCSR',
      /CN "turin"; accepted is "rome"/,
    ],
    [
      'a request for the administrators',
      {
        ...good,
        csr: toBase64(buildCertificateRequest({ commonName: 'rome', organization: 'system:masters' }, rome.privateKey)),
      },
      'InvalidCSR',
      /O "system:masters"/,
    ],
    [
      'a request with another key',
      { ...good, csr: toBase64(buildCertificateRequest(controlPlaneSubject('rome'), stranger.privateKey)) },
      'InvalidCSR',
      /another key/,
    ],
    ['a public key that is none', { ...good, publicKey: toBase64('nonsense') }, 'InvalidCSR', /PUBLIC KEY/],
  ])('fails on %s', (_name, spec, reason, message) => {
    expect(checkHandshake(tenantOf(spec), nonce)).toMatchObject({
      ok: false,
      reason,
      message: expect.stringMatching(message),
    });
  });

  test('never throws and never succeeds on damaged material', () => {
    const field = fc.constantFrom('publicKey', 'csr', 'signature' as const);
    fc.assert(
      fc.property(field, fc.uint8Array({ minLength: 1, maxLength: 300 }), (name, bytes) => {
        expect(checkHandshake(tenantOf({ ...good, [name]: toBase64(bytes) }), nonce).ok).toBe(false);
      }),
    );
  });
});

describe('a name that already has rights', () => {
  const binding = (subject: { kind: string; name: string }, labels: Record<string, string> = {}): RoleBinding => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'b', namespace: 'ns', labels },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', ...subject }],
  });
  test.each([
    ['a user', { kind: 'User', name: 'rome' }],
    ['a group', { kind: 'Group', name: 'rome' }],
  ])('is refused when it is %s of another subject', (_name, subject) => {
    expect(foreignGrant('rome', ['rome'], [binding(subject)])).toMatch(
      /RoleBinding ns\/b grants ClusterRole admin .* "rome"/,
    );
  });
  test.each([
    ['a binding of this peering', binding({ kind: 'User', name: 'rome' }, { [label.remoteClusterId]: 'rome' })],
    ['another name', binding({ kind: 'User', name: 'romeo' })],
    ['a service account of that name', binding({ kind: 'ServiceAccount', name: 'rome' })],
  ])('is not %s', (_name, other) => {
    expect(foreignGrant('rome', ['rome'], [other])).toBeUndefined();
  });
  test("is also seen behind another peer's label", () => {
    expect(
      foreignGrant('rome', ['rome'], [binding({ kind: 'User', name: 'rome' }, { [label.remoteClusterId]: 'turin' })]),
    ).toBeDefined();
  });
});
