/** A kubeconfig with one client certificate. Pure. */
export interface KubeconfigFacts {
  readonly cluster: string;
  readonly user: string;
  readonly server: string;
  /** PEM; absent: publicly trusted. */
  readonly ca?: string;
  /** PEM. */
  readonly certificate: string;
  /** PEM. */
  readonly privateKey: string;
  readonly namespace?: string;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

export function kubeconfigText({
  cluster,
  user,
  server,
  ca,
  certificate,
  privateKey,
  namespace,
}: KubeconfigFacts): string {
  const text = JSON.stringify;
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    `- name: ${text(cluster)}`,
    '  cluster:',
    `    server: ${text(server)}`,
    ...(ca === undefined ? [] : [`    certificate-authority-data: ${base64(ca)}`]),
    'users:',
    `- name: ${text(user)}`,
    '  user:',
    `    client-certificate-data: ${base64(certificate)}`,
    `    client-key-data: ${base64(privateKey)}`,
    'contexts:',
    '- name: default-context',
    '  context:',
    `    cluster: ${text(cluster)}`,
    `    user: ${text(user)}`,
    ...(namespace === undefined ? [] : [`    namespace: ${text(namespace)}`]),
    'current-context: default-context',
    '',
  ].join('\n');
}
