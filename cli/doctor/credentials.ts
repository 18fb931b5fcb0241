/** What the kubeconfigs that a consumer holds say of its providers, without what is secret in them. Pure. */
import { createHash, X509Certificate } from 'node:crypto';
import * as yaml from 'yaml';
import type { Secret } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { CredentialFacts } from './facts.ts';

const marker = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const hashOf = (pem: string): string => createHash('sha256').update(new X509Certificate(pem).raw).digest('hex');

/** SHA-256 of each certificate of a PEM bundle, hex; what is no certificate is left out. */
export function certificatesOf(pem: string): string[] {
  return [...pem.matchAll(marker)].flatMap(([one]) => {
    try {
      return [hashOf(one)];
    } catch {
      return [];
    }
  });
}

const decoded = (base64: unknown): string =>
  typeof base64 === 'string' ? Buffer.from(base64, 'base64').toString('utf8') : '';

function endOf(certificate: string): number | undefined {
  try {
    return certificate === '' ? undefined : Date.parse(new X509Certificate(certificate).validTo);
  } catch {
    return undefined;
  }
}

interface Kubeconfig {
  readonly clusters?: readonly { readonly cluster?: Readonly<Record<string, unknown>> }[];
  readonly users?: readonly { readonly user?: Readonly<Record<string, unknown>> }[];
}

function read(text: string): CredentialFacts['read'] {
  let config: Kubeconfig | null;
  try {
    config = yaml.parse(text) as Kubeconfig | null;
  } catch {
    return undefined;
  }
  const cluster = config?.clusters?.[0]?.cluster;
  const user = config?.users?.[0]?.user;
  if (typeof cluster?.server !== 'string' || user === undefined) return undefined;
  const endsAt = endOf(decoded(user['client-certificate-data']));
  return {
    server: cluster.server.replace(/\/+$/, ''),
    proxied: typeof cluster['proxy-url'] === 'string',
    trusts: certificatesOf(decoded(cluster['certificate-authority-data'])),
    ...(endsAt !== undefined && { endsAt }),
  };
}

export const credentialOf = ({ metadata, data }: Secret): CredentialFacts => {
  const found = read(decoded(data?.kubeconfig));
  return {
    namespace: metadata.namespace ?? '',
    secret: metadata.name,
    peer: metadata.labels?.[label.remoteClusterId] ?? '',
    used: metadata.labels?.[label.identityType] === 'ControlPlane' ? 'control plane' : 'virtual node',
    ...(found !== undefined && { read: found }),
  };
};
