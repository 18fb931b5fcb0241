/** The kubeconfig by which a consumer logs in at a provider, in the layout that Liqo and kubectl read. */
import { toBase64 } from '#agent/pki/pem.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';

/** Undefined: the identity holds no credentials yet. Refuses what this agent cannot log in with. */
export function buildKubeconfig(identity: Identity, privateKeyPem: string): string | undefined {
  const { clusterID, authParams, type, namespace } = identity.spec;
  const { apiServer, ca, signedCRT, proxyURL, awsConfig } = authParams;
  if (awsConfig !== undefined) {
    throw new AppError(
      'invalid_input',
      'spec.authParams.awsConfig is set: IAM users of EKS are not supported; accepted is a certificate in signedCRT',
    );
  }
  if (apiServer === undefined || apiServer === '' || signedCRT === undefined || signedCRT === '') return undefined;
  const text = JSON.stringify;
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
    // Normalised, since the base64 in a hand-written Identity may be broken into lines.
    `    client-certificate-data: ${toBase64(Buffer.from(signedCRT, 'base64'))}`,
    `    client-key-data: ${toBase64(privateKeyPem)}`,
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
