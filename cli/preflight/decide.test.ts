import { describe, expect, test } from 'vitest';
import { clusterFacts, knownClusters, nodeFacts } from '#cli/platform/known-clusters.ts';
import { findProfile, profileNames, profileOf } from '#cli/platform/profiles.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { decide } from './decide.ts';
import type { CheckFacts } from './facts.ts';
import { type CheckName, checks, type Finding, stopsOf } from './findings.ts';
import { refusalOf } from './preflight.ts';

const facts = (some: Partial<CheckFacts> = {}): CheckFacts => ({
  cluster: clusterFacts(),
  found: { profile: profileOf('generic'), because: 'a test' },
  user: 'admin',
  missingRights: [],
  agent: {},
  signer: { setting: 'auto' },
  trials: {},
  clockAheadMs: 0,
  ranges: { notes: ['pods: 10.244.0.0/16 (ConfigMap kube-system/kubeadm-config)'] },
  apiUrl: { url: 'https://rome.example.com:6443' },
  kubectl: 'kubectl --kubeconfig rome.kubeconfig',
  ...some,
});
const of = (check: CheckName, some: Partial<CheckFacts>): Finding[] =>
  decide(facts(some)).filter((finding) => finding.check === check);
const withCluster = (some: Parameters<typeof clusterFacts>[0]): Partial<CheckFacts> => ({
  cluster: clusterFacts(some),
});
const refusal = (message: string, detail = {}): { refusal: AppError } => ({
  refusal: new AppError('invalid_input', message, { detail }),
});
const loopback = refusal('the kubeconfig names the API server https://127.0.0.1:6443, which peers cannot reach', {
  reason: 'loopback',
});

type Case = readonly [string, CheckName, Partial<CheckFacts>, Finding['outcome'], RegExp, RegExp?];

const cases: readonly Case[] = [
  ['Kubernetes 1.29', 'version', withCluster({ version: 'v1.29.9' }), 'stop', /v1\.29\.9, needed is 1\.30/, /upgrade/],
  ['Kubernetes 1.30', 'version', withCluster({ version: 'v1.30.0' }), 'ok', /v1\.30\.0/],
  ['Kubernetes 1.30 of a distribution', 'version', withCluster({ version: 'v1.30.14-eks-99d6cc0' }), 'ok', /eks/],
  ['a version that is no version', 'version', withCluster({ version: 'main' }), 'unknown', /main/],
  ['no node', 'nodes', withCluster({ nodes: [] }), 'unknown', /no node yet/],
  [
    'Windows nodes only',
    'nodes',
    withCluster({ nodes: [nodeFacts({ os: 'windows', name: 'w1' })] }),
    'stop',
    /w1/,
    /Linux node/,
  ],
  [
    'nodes of another architecture',
    'nodes',
    withCluster({ nodes: [nodeFacts({ arch: 's390x' })] }),
    'stop',
    /n1 is s390x/,
    /add a node/,
  ],
  [
    'an old kernel',
    'kernel',
    withCluster({ nodes: [nodeFacts({ kernel: '3.10.0-1160.el7' })] }),
    'stop',
    /n1 has 3\.10/,
    /delete node n1/,
  ],
  [
    'a kernel without WireGuard',
    'kernel',
    withCluster({ nodes: [nodeFacts({ kernel: '5.4.0-150' })] }),
    'adapted',
    /wireguard-go/,
  ],
  ['a kernel of today', 'kernel', {}, 'unknown', /vxlan, nf_tables and tun/],
  ['no network', 'kernel', { ranges: undefined as never }, 'ok', /without a network/],
  ['all rights', 'rights', {}, 'ok', /admin may install/],
  [
    'missing rights',
    'rights',
    { user: 'bob', missingRights: [{ verb: 'create', resource: 'deployments.apps' }] },
    'stop',
    /bob may not create deployments\.apps/,
    /create clusterrolebinding isthmus-installer --clusterrole=cluster-admin --user=bob/,
  ],
  ['an installation', 'agent', { agent: { clusterId: 'rome', image: 'x:1' } }, 'ok', /rome, image x:1/],
  [
    'Liqo',
    'agent',
    { agent: refusal('Liqo itself is installed', { remedy: 'liqoctl uninstall' }) },
    'stop',
    /Liqo/,
    /liqoctl uninstall/,
  ],
  [
    'a refused namespace',
    'pod-security',
    { trials: { namespace: 'denied by policy' } },
    'stop',
    /denied by policy/,
    /leave out the namespaces liqo/,
  ],
  [
    'a standard for all namespaces',
    'pod-security',
    { trials: { pod: 'pods "x" is forbidden: violates PodSecurity "baseline:latest": host namespaces' } },
    'adapted',
    /baseline:latest.*labelled/,
  ],
  ['an unknown signer', 'credentials', {}, 'unknown', /asks the signer.*tokens if it refuses or says nothing for 30 s/],
  ['tokens by option', 'credentials', { signer: { setting: 'token' } }, 'ok', /tokens, as --credentials says/],
  [
    'a signer that has signed',
    'credentials',
    { signer: { setting: 'auto', signed: 'csr-1' } },
    'ok',
    /certificates: the signer signed csr-1/,
  ],
  [
    'a finding of the agent',
    'credentials',
    { signer: { setting: 'auto', found: { kind: 'token', reason: 'nothing came' }, signed: 'csr-1' } },
    'adapted',
    /tokens: nothing came; consumers that run Liqo cannot/,
  ],
  [
    'a controller manager with a key',
    'credentials',
    { signer: { setting: 'auto', controllerManager: ['--cluster-signing-key-file=/etc/kubernetes/pki/ca.key'] } },
    'ok',
    /certificates: kube-controller-manager runs with --cluster-signing-key-file=/,
  ],
  [
    'a controller manager without a key',
    'credentials',
    { signer: { setting: 'auto', controllerManager: ['kube-controller-manager', '--cluster-signing-key-file='] } },
    'adapted',
    /tokens: .*without --cluster-signing-key-file/,
  ],
  [
    'a controller manager that does not sign',
    'credentials',
    {
      signer: {
        setting: 'auto',
        controllerManager: [
          '--cluster-signing-key-file=/k',
          '--controllers=*,-certificatesigningrequest-signing-controller',
        ],
      },
    },
    'adapted',
    /tokens: .*-certificatesigningrequest-signing-controller/,
  ],
  [
    'EKS',
    'credentials',
    { found: { profile: profileOf('eks'), because: 'a test' } },
    'adapted',
    /tokens: Amazon EKS signs no client certificates/,
  ],
  [
    'certificates on EKS',
    'credentials',
    { found: { profile: profileOf('eks'), because: 'a test' }, signer: { setting: 'certificate' } },
    'stop',
    /this cluster signs none: Amazon EKS/,
    /--credentials auto/,
  ],
  [
    'certificates by option',
    'credentials',
    { signer: { setting: 'certificate' } },
    'unknown',
    /shows with the first peering/,
  ],
  ['no rights to try', 'pod-security', { trials: undefined as never }, 'unknown', /not tried/],
  ['a policy of another kind', 'pod-security', { trials: { pod: 'kyverno says no' } }, 'unknown', /kyverno says no/],
  ['no CNI that is known', 'cni', {}, 'unknown', /no DaemonSet/],
  [
    'ranges that overlap',
    'ranges',
    { ranges: refusal('--internal-cidr is 10.0.0.0/8, which overlaps') },
    'stop',
    /overlaps/,
    /./,
  ],
  [
    'ranges that are guessed',
    'ranges',
    { ranges: { notes: ["pods: 10.0.0.0/16 (a guess from the nodes' ranges)"] } },
    'unknown',
    /a guess/,
  ],
  ['a public API server', 'api-url', {}, 'ok', /rome\.example\.com/],
  ['a private API server', 'api-url', { apiUrl: { url: 'https://192.168.1.4:6443' } }, 'adapted', /--in-band/],
  [
    'a loopback URL',
    'api-url',
    { apiUrl: loopback },
    'stop',
    /127\.0\.0\.1/,
    /--api-server-url https:\/\/10\.0\.0\.4:6443/,
  ],
  [
    'a loopback URL on K3s',
    'api-url',
    { apiUrl: loopback, cluster: knownClusters.k3s, found: findProfile(knownClusters.k3s) },
    'stop',
    /kubeconfigs of K3s name the machine that they are on/,
    /https:\/\/10\.0\.0\.4:6443/,
  ],
  [
    'an http URL',
    'api-url',
    { apiUrl: refusal('the API server URL is "http://x", accepted is https') },
    'stop',
    /accepted is https/,
    /./,
  ],
  [
    'a load balancer',
    'gateways',
    withCluster({ balanced: [{ name: 'a/b', address: '1.2.3.4' }] }),
    'ok',
    /a\/b has 1\.2\.3\.4/,
  ],
  [
    'a Service that waits',
    'gateways',
    withCluster({ balanced: [{ name: 'a/b' }] }),
    'adapted',
    /wait for an address \(a\/b\).*NodePort/,
  ],
  ['private nodes', 'gateways', {}, 'adapted', /10\.0\.0\.4.*--gateway-location/],
  [
    'nodes with an address outside',
    'gateways',
    withCluster({ nodes: [nodeFacts({ addresses: [{ type: 'ExternalIP', address: '8.8.4.4' }] })] }),
    'adapted',
    /NodePort, at 8\.8\.4\.4/,
  ],
  ['an API server on a node', 'webhooks', {}, 'ok', /10\.0\.0\.4/],
  [
    'an API server elsewhere',
    'webhooks',
    withCluster({ apiEndpoints: ['10.9.0.1:443'] }),
    'unknown',
    /10\.9\.0\.1.*TCP 9443/,
  ],
  ['no Date', 'clock', { clockAheadMs: undefined }, 'unknown', /no Date/],
  ['clocks 20 s apart', 'clock', { clockAheadMs: 20_000 }, 'adapted', /20 s behind/],
  ['clocks 2 minutes apart', 'clock', { clockAheadMs: -120_000 }, 'stop', /120 s ahead/, /timedatectl set-ntp true/],
];

test.each(cases.map(([what, ...rest]) => ({ what, rest })))('$what: $rest.0 is $rest.2', ({ rest }) => {
  const [check, some, outcome, text, remedy] = rest;
  const { ranges, ...others } = some;
  const given = facts(others);
  const found = decide(
    'ranges' in some && ranges === undefined ? withoutRanges(given) : { ...given, ...(ranges && { ranges }) },
  );
  const finding = found.find((one) => one.check === check && text.test(one.text));
  expect(finding, JSON.stringify(found, null, 1)).toMatchObject({ outcome });
  if (finding?.outcome === 'stop') expect(finding.remedy).toMatch(remedy as RegExp);
});

function withoutRanges({ ranges: _, ...others }: CheckFacts): CheckFacts {
  return others;
}

describe('the checks together', () => {
  test.each(profileNames.map((name) => ({ name })))(
    'say something of each check and stop nothing on $name',
    ({ name }) => {
      const cluster = knownClusters[name];
      const findings = decide(facts({ cluster, found: findProfile(cluster) }));
      expect(new Set(findings.map(({ check }) => check))).toEqual(new Set(checks));
      expect(stopsOf(findings)).toEqual([]);
    },
  );

  test('a Windows node beside Linux nodes is named and stops nothing', () => {
    const nodes = [nodeFacts(), nodeFacts({ name: 'win1', os: 'windows', kernel: '10.0.20348.2966' })];
    const findings = of('nodes', withCluster({ nodes }));
    expect(findings.map(({ outcome }) => outcome)).toEqual(['ok', 'adapted']);
    expect(findings[1]?.text).toContain('win1');
    expect(of('kernel', withCluster({ nodes })).filter(({ outcome }) => outcome === 'stop')).toEqual([]);
  });

  test('one that stops fails with its own code, several with one code and all remedies', () => {
    const one = stopsOf(decide(facts(withCluster({ version: 'v1.29.0' }))));
    expect(refusalOf(one)).toMatchObject({ code: 'kubernetes_unsupported', detail: { check: 'version' } });
    const two = stopsOf(decide(facts({ ...withCluster({ version: 'v1.29.0' }), clockAheadMs: 300_000 })));
    expect(refusalOf(two)).toMatchObject({
      code: 'preflight_failed',
      message: expect.stringMatching(/2 checks stop: version: .*clock: /),
      detail: { remedy: expect.stringMatching(/upgrade[\s\S]*timedatectl/) },
    });
    expect(refusalOf(stopsOf(two, ['version', 'clock']))).toBeUndefined();
  });
});
