/**
 * The kubeconfig by which a consumer logs in at a provider, in the layout that Liqo and kubectl read. A token stays sealed in it, in an extension: the agent
 * opens it when it connects, and no object holds it in the clear.
 */
import { accountFor } from '#agent/model/peer-accounts.ts';
import { credentialOf } from '#agent/model/peer-credentials.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { sealedTokenExtension } from '#kube/http/kubeconfig.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';

/** Fails with `invalid_input` where the Identity does not say whose token it may be. */
export function accountOfToken(identity: Identity): string {
  const account = accountFor(identity);
  if (account !== undefined) return account;
  const missing =
    identity.spec.type === 'ControlPlane' ? 'spec.namespace' : `metadata.labels[${label.resourceSliceName}]`;
  throw new AppError(
    'invalid_input',
    `${missing} is missing, and spec.authParams holds a token: accepted is that of one account of the provider`,
  );
}

/** Undefined: the identity holds no credentials yet. Refuses what this agent cannot log in with. */
export function buildKubeconfig(identity: Identity, privateKeyPem: string): string | undefined {
  const { clusterID, authParams, type, namespace } = identity.spec;
  const { apiServer, ca, proxyURL, awsConfig } = authParams;
  const credential = credentialOf(authParams);
  if (awsConfig !== undefined) {
    throw new AppError(
      'invalid_input',
      'spec.authParams.awsConfig is set: IAM users of EKS are not supported; accepted is a certificate in signedCRT or a token in sealedToken',
    );
  }
  if (apiServer === undefined || apiServer === '' || credential === undefined) return undefined;
  const text = JSON.stringify;
  const login =
    credential.kind === 'certificate'
      ? [
          // Normalised, since the base64 in a hand-written Identity may be broken into lines.
          `    client-certificate-data: ${toBase64(Buffer.from(credential.pem))}`,
          `    client-key-data: ${toBase64(privateKeyPem)}`,
        ]
      : [
          '    extensions:',
          `    - name: ${sealedTokenExtension}`,
          '      extension:',
          `        account: ${text(accountOfToken(identity))}`,
          `        sealed: ${text(credential.sealed)}`,
        ];
  const lines = [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    `- name: ${text(clusterID)}`,
    '  cluster:',
    `    server: ${text(apiServer)}`,
    ...(ca ? [`    certificate-authority-data: ${toBase64(Buffer.from(ca, 'base64'))}`] : []),
    ...(proxyURL ? [`    proxy-url: ${text(proxyURL)}`] : []),
    'users:',
    `- name: ${text(identity.metadata.name)}`,
    '  user:',
    ...login,
    'contexts:',
    '- name: default-context',
    '  context:',
    `    cluster: ${text(clusterID)}`,
    `    user: ${text(identity.metadata.name)}`,
    ...(type === 'ControlPlane' && namespace ? [`    namespace: ${text(namespace)}`] : []),
    'current-context: default-context',
  ];
  return `${lines.join('\n')}\n`;
}
