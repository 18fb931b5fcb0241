import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import type { CertificateSigningRequest } from '#shared/domain/core-kinds.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { ensureCertificate } from './issue-certificate.ts';
import { buildSigningRequest, type Holder, requestName } from './issued-certificate.ts';

const subject = { commonName: 'rome', organization: 'liqo.io' };
const pemOf = (of = subject): string =>
  buildCertificateRequest(
    of,
    generateKeyPairSync('ed25519', {
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    }).privateKey,
  );
const csrPem = pemOf();
const holder: Holder = {
  consumer: 'rome',
  namespace: 'liqo-tenant-rome',
  owner: { apiVersion: 'authentication.liqo.io/v1beta1', kind: 'Tenant', name: 'rome', uid: 'u1' },
};
const self = 'system:serviceaccount:liqo:isthmus-agent';
const name = requestName(holder, toBase64(csrPem), undefined);
const wanted = buildSigningRequest(holder, name, csrPem, 3600);
const own: CertificateSigningRequest = {
  ...wanted,
  metadata: { ...wanted.metadata, uid: 'r1' },
  spec: { ...wanted.spec, username: self },
};

/** The API server already has `found` under the name that this agent would give its own request. */
async function pass(found: CertificateSigningRequest) {
  const calls: string[] = [];
  const api = {
    get: async () => undefined,
    list: async () => [],
    postPath: async () => ({ status: { userInfo: { username: self } } }),
    update: async (_type: unknown, object: CertificateSigningRequest, { subresource }: { subresource: string }) => {
      calls.push(subresource);
      return object;
    },
    delete: async (_type: unknown, _ref: unknown, { uid }: { uid?: string }) => calls.push(`delete ${uid}`),
  } as unknown as KubeApi;
  const issue = await ensureCertificate(
    {
      api,
      clock: systemClock,
      lifetimeSeconds: 3600,
      secretCache: { get: () => undefined } as unknown as Cache<Secret>,
      requestCache: { get: () => found, list: () => [found] } as unknown as Cache<CertificateSigningRequest>,
    },
    holder,
    subject,
    csrPem,
    new AbortController().signal,
  );
  return { calls, issue };
}

test('a request that the agent made before it was interrupted is approved', async () => {
  const { calls, issue } = await pass(own);
  expect(calls).toEqual(['approval']);
  expect(issue).toMatchObject({ state: 'waiting' });
});

test.each<[string, Partial<CertificateSigningRequest['spec']>, string]>([
  ['asks for another subject', { request: toBase64(pemOf({ ...subject, commonName: 'admin' })) }, 'spec.request'],
  ['goes to another signer', { signerName: 'kubernetes.io/kube-apiserver-client-kubelet' }, 'spec.signerName'],
  ['is for a server, too', { usages: ['client auth', 'server auth'] }, 'spec.usages'],
  ['lives longer', { expirationSeconds: 3601 }, 'spec.expirationSeconds'],
  ['was made by another user', { username: 'eve' }, 'made by eve'],
])('a request under the name of ours that %s is never approved, and goes', async (_what, change, says) => {
  const { calls, issue } = await pass({ ...own, spec: { ...own.spec, ...change } });
  expect(calls).toEqual(['delete r1']);
  expect(issue).toMatchObject({ state: 'refused', reason: 'ForeignRequest', message: expect.stringContaining(says) });
});
