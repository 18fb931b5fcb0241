/** Client certificates from a cluster's own signer, as an administrator makes them. */
import { generateKeyPairSync } from 'node:crypto';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { certificateSigningRequests } from '#shared/domain/core-kinds.ts';
import { eventually } from '#test/harness/eventually.ts';
import { patience } from './stage.ts';

export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

export async function mintCertificate(api: KubeApi, user: string): Promise<ClientCertificate> {
  const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const name = `test-${user}-${crypto.randomUUID().slice(0, 8)}`;
  const request = await api.create(certificateSigningRequests, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: toBase64(buildCertificateRequest({ commonName: user, organization: 'testers' }, key)),
      signerName: 'kubernetes.io/kube-apiserver-client',
      usages: ['digital signature', 'key encipherment', 'client auth'],
      expirationSeconds: 3_600,
    },
  });
  const conditions = [{ type: 'Approved', status: 'True', reason: 'Test', message: 'approved by a test' }];
  await api.update(certificateSigningRequests, { ...request, status: { conditions } }, { subresource: 'approval' });
  try {
    const cert = await eventually(
      `a certificate for ${user}`,
      async () => (await api.get(certificateSigningRequests, { name }))?.status?.certificate,
      patience,
    );
    return { cert: fromBase64(cert), key };
  } finally {
    await api.delete(certificateSigningRequests, { name });
  }
}
