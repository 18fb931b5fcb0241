/** Certificates, kubeconfigs and command lines of one control plane: shared by the test bed and by the bare API server of tests. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { auditLog } from './asked-rights.ts';
import { CertificateAuthority, type KeyPair, newServiceAccountKeys, type Subject } from './pki.ts';

export interface ControlPlane {
  /** Name of the cluster in kubeconfigs. */
  readonly name: string;
  /** Holds `pki/`, `etcd/` and the kubeconfigs. */
  readonly dir: string;
  readonly address: string;
  /** By which its own cluster reaches it; `address` unless told. */
  readonly insideAddress?: string;
  readonly port: number;
  readonly etcdUrl: string;
  readonly serviceCidr: string;
  /** First address of `serviceCidr`: the Service `kubernetes`. */
  readonly serviceIp: string;
  readonly podCidr?: string;
  /**
   * By which the administrator's kubeconfig logs in, else by a certificate. kube-apiserver verifies a client certificate again for each request, which took 2 %
   * of the processor time of tests.
   */
  readonly adminToken?: string;
}

const pkiFile = (dir: string, name: string): string => path.join(dir, 'pki', name);
const tokenFile = (dir: string): string => pkiFile(dir, 'tokens.csv');

export function kubeconfigOf(
  cluster: string,
  url: string,
  ca: string,
  user: KeyPair | { readonly token: string },
): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const credential =
    'token' in user
      ? { token: user.token }
      : { 'client-certificate-data': base64(user.cert), 'client-key-data': base64(user.key) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: cluster, cluster: { server: url, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: 'admin', user: credential }],
    contexts: [{ name: cluster, context: { cluster, user: 'admin' } }],
    'current-context': cluster,
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

export const apiServerUrl = ({ address, port }: ControlPlane): string => `https://${address}:${port}`;

const write = (file: string, text: string): Promise<void> => writeFile(file, text, { mode: 0o600 });

async function writePair(dir: string, name: string, pair: KeyPair): Promise<void> {
  await Promise.all([write(pkiFile(dir, `${name}.crt`), pair.cert), write(pkiFile(dir, `${name}.key`), pair.key)]);
}

export interface Credentials {
  readonly ca: CertificateAuthority;
  readonly admin: KeyPair;
  readonly kubeconfig: string;
}

/** Writes a fresh PKI and the kubeconfigs of the components. */
export async function writeCredentials(plane: ControlPlane): Promise<Credentials> {
  const { dir } = plane;
  await mkdir(path.join(dir, 'pki'), { recursive: true });
  const [ca, frontProxy, serviceAccount] = await Promise.all([
    CertificateAuthority.create('kubernetes'),
    CertificateAuthority.create('front-proxy'),
    newServiceAccountKeys(),
  ]);
  const url = apiServerUrl(plane);
  const issueConfig = async (file: string, subject: Subject): Promise<void> =>
    write(path.join(dir, `${file}.conf`), kubeconfigOf(plane.name, url, ca.cert, await ca.issue(subject)));
  const admin = await ca.issue({ commonName: 'admin', organization: 'system:masters' });
  const token = plane.adminToken;
  const kubeconfig = kubeconfigOf(plane.name, url, ca.cert, token === undefined ? admin : { token });
  const serving: Subject = {
    commonName: 'kube-apiserver',
    ips: [...new Set([plane.address, plane.insideAddress ?? plane.address, '127.0.0.1', plane.serviceIp])],
    dnsNames: [
      'localhost',
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      'kubernetes.default.svc.cluster.local',
    ],
  };
  await Promise.all([
    writePair(dir, 'ca', ca),
    writePair(dir, 'front-proxy-ca', frontProxy),
    writePair(dir, 'admin', admin),
    ca.issue(serving).then((pair) => writePair(dir, 'apiserver', pair)),
    ca
      .issue({ commonName: 'kube-apiserver-kubelet-client', organization: 'system:masters' })
      .then((pair) => writePair(dir, 'kubelet-client', pair)),
    frontProxy.issue({ commonName: 'front-proxy-client' }).then((pair) => writePair(dir, 'front-proxy', pair)),
    write(pkiFile(dir, 'service-account.key'), serviceAccount.privateKey),
    write(pkiFile(dir, 'service-account.pub'), serviceAccount.publicKey),
    issueConfig('controller-manager', { commonName: 'system:kube-controller-manager' }),
    issueConfig('scheduler', { commonName: 'system:kube-scheduler' }),
    issueConfig('proxy', { commonName: 'system:kube-proxy' }),
    write(path.join(dir, 'kubeconfig'), kubeconfig),
    ...(token === undefined ? [] : [write(tokenFile(dir), `${token},admin,admin,system:masters\n`)]),
    write(path.join(dir, auditPolicy), JSON.stringify(whatAccountsAsk)),
  ]);
  return { ca, admin, kubeconfig };
}

const auditPolicy = 'audit-policy.json';
/** What the accounts of Isthmus, its guests and tests' own users ask, and of that no bodies: which rights they use. */
const whatAccountsAsk = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  // Of a watch that is open when its server is killed, the start is all that the log ever has.
  omitStages: ['RequestReceived'],
  rules: [
    {
      level: 'None',
      userGroups: ['system:masters', 'system:nodes', 'system:serviceaccounts:kube-system', 'system:unauthenticated'],
    },
    {
      level: 'None',
      users: ['system:apiserver', 'system:kube-controller-manager', 'system:kube-scheduler', 'system:kube-proxy'],
    },
    { level: 'None', nonResourceURLs: ['*'] },
    { level: 'Metadata' },
  ],
};

export const etcdArgs = (plane: ControlPlane): string[] => [
  'etcd',
  `--data-dir=${path.join(plane.dir, 'etcd')}`,
  `--listen=${plane.etcdUrl}`,
];

export function apiServerArgs(plane: ControlPlane, extra: readonly string[] = []): string[] {
  const file = (name: string): string => pkiFile(plane.dir, name);
  return [
    'kube-apiserver',
    `--etcd-servers=${plane.etcdUrl}`,
    `--secure-port=${plane.port}`,
    `--advertise-address=${plane.insideAddress ?? plane.address}`,
    `--service-cluster-ip-range=${plane.serviceCidr}`,
    `--client-ca-file=${file('ca.crt')}`,
    `--tls-cert-file=${file('apiserver.crt')}`,
    `--tls-private-key-file=${file('apiserver.key')}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    `--kubelet-client-certificate=${file('kubelet-client.crt')}`,
    `--kubelet-client-key=${file('kubelet-client.key')}`,
    // Without this, exec and logs look the node's name up in DNS.
    '--kubelet-preferred-address-types=InternalIP,Hostname',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('service-account.pub')}`,
    `--service-account-signing-key-file=${file('service-account.key')}`,
    `--requestheader-client-ca-file=${file('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-username-headers=X-Remote-User',
    `--proxy-client-cert-file=${file('front-proxy.crt')}`,
    `--proxy-client-key-file=${file('front-proxy.key')}`,
    '--enable-aggregator-routing=true',
    '--allow-privileged=true',
    '--profiling=false',
    ...(plane.adminToken === undefined ? [] : [`--token-auth-file=${tokenFile(plane.dir)}`]),
    `--audit-policy-file=${path.join(plane.dir, auditPolicy)}`,
    `--audit-log-path=${path.join(plane.dir, auditLog)}`,
    '--audit-log-maxsize=100',
    '--audit-log-maxbackup=4',
    ...extra,
  ];
}

export function controllerManagerArgs(plane: ControlPlane, extra: readonly string[] = []): string[] {
  const config = path.join(plane.dir, 'controller-manager.conf');
  const file = (name: string): string => pkiFile(plane.dir, name);
  return [
    'kube-controller-manager',
    `--kubeconfig=${config}`,
    `--authentication-kubeconfig=${config}`,
    `--authorization-kubeconfig=${config}`,
    `--service-account-private-key-file=${file('service-account.key')}`,
    `--root-ca-file=${file('ca.crt')}`,
    `--cluster-signing-cert-file=${file('ca.crt')}`,
    `--cluster-signing-key-file=${file('ca.key')}`,
    '--use-service-account-credentials=true',
    // The default of 20 requests a second makes the start of its sixty controllers take seconds.
    '--kube-api-qps=300',
    '--kube-api-burst=600',
    `--service-cluster-ip-range=${plane.serviceCidr}`,
    ...(plane.podCidr === undefined ? [] : [`--cluster-cidr=${plane.podCidr}`, '--allocate-node-cidrs=true']),
    '--leader-elect=false',
    // Nothing asks it; for a port it would make two RSA keys first, and servers of tests share one loopback.
    '--secure-port=0',
    '--profiling=false',
    ...extra,
  ];
}

export const schedulerConfig = ({ dir }: ControlPlane): string => path.join(dir, 'scheduler.conf');

/** `config`: path of its kubeconfig. */
export function schedulerArgs(config: string, extra: readonly string[] = []): string[] {
  return [
    'kube-scheduler',
    `--kubeconfig=${config}`,
    `--authentication-kubeconfig=${config}`,
    `--authorization-kubeconfig=${config}`,
    '--kube-api-qps=300',
    '--kube-api-burst=600',
    '--leader-elect=false',
    // Nothing asks it, and for a port it would make two RSA keys first.
    '--secure-port=0',
    '--profiling=false',
    ...extra,
  ];
}
