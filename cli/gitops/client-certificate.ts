/** A client certificate of a cluster: the key is made here and never leaves, the cluster's own signer signs. */
import { randomBytes, webcrypto } from 'node:crypto';
import type { KubeClient } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type CertificateSigningRequest, certificateSigningRequests } from '#shared/domain/core-kinds.ts';
import { AppError } from '#shared/errors/app-error.ts';

export interface ClientSubject {
  readonly commonName: string;
  readonly organization: string;
}

export interface KeyAndRequest {
  /** PEM, PKCS#8. */
  readonly privateKey: string;
  /** PEM. */
  readonly request: string;
}

/** Ed25519. */
export async function createKeyAndRequest({ commonName, organization }: ClientSubject): Promise<KeyAndRequest> {
  // Loaded late: only two commands of many need it.
  await import('reflect-metadata');
  const { PemConverter, Pkcs10CertificateRequestGenerator } = await import('@peculiar/x509');
  const algorithm = { name: 'Ed25519' };
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const name = [{ O: [organization] }, { CN: [commonName] }];
  const request = await Pkcs10CertificateRequestGenerator.create({ name, keys, signingAlgorithm: algorithm });
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { privateKey: `${PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`, request: `${request.toString('pem')}\n` };
}

export interface SigningOptions {
  /** Of the CertificateSigningRequest; a random one with this prefix unless `exact`. */
  readonly name: string;
  readonly exact?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly lifetimeSeconds?: number;
  readonly timeoutMs?: number;
}

const signer = 'kubernetes.io/kube-apiserver-client';

/** Resolves with the certificate, PEM. Needs the right to approve for the signer. The request object stays when `exact`. */
export async function signedByCluster(
  io: Pick<CliIo, 'clock' | 'signal'>,
  kube: KubeClient,
  request: string,
  { name: wanted, exact = false, labels, lifetimeSeconds, timeoutMs = 30_000 }: SigningOptions,
): Promise<string> {
  const name = exact ? wanted : `${wanted}-${randomBytes(4).toString('hex')}`;
  await kube.create(certificateSigningRequests, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name, ...(labels === undefined ? {} : { labels: { ...labels } }) },
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName: signer,
      usages: ['digital signature', 'client auth'],
      ...(lifetimeSeconds === undefined ? {} : { expirationSeconds: lifetimeSeconds }),
    },
  });
  try {
    const approved = {
      type: 'Approved',
      status: 'True',
      reason: 'Isthmus',
      message: 'approved by the isthmus command',
    };
    await kube.mergePatch(certificateSigningRequests, { name }, { status: { conditions: [approved] } }, 'approval');
    return await poll(
      io,
      timeoutMs,
      async () => certificateOf(await kube.get<CertificateSigningRequest>(certificateSigningRequests, { name })),
      () =>
        new AppError('deadline_exceeded', `the cluster does not sign CertificateSigningRequest ${name}`, {
          detail: { remedy: `is the signer ${signer} enabled in kube-controller-manager? EKS has none` },
        }),
    );
  } finally {
    if (!exact) await kube.delete(certificateSigningRequests, { name });
  }
}

function certificateOf(request: CertificateSigningRequest | undefined): string | undefined {
  const failed = request?.status?.conditions?.find(({ type }) => type === 'Failed' || type === 'Denied');
  if (failed !== undefined)
    throw new AppError('kube_failed', `the certificate was refused: ${failed.message ?? failed.reason ?? failed.type}`);
  const { certificate } = request?.status ?? {};
  return certificate === undefined ? undefined : Buffer.from(certificate, 'base64').toString();
}
