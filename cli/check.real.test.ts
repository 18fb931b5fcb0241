/** `isthmus check` on a real API server that holds namespaces to the standard `baseline` by default, as Talos does. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import {
  certificateSigningRequests,
  clusterRoleBindings,
  clusterRoles,
  namespaces,
  nodes,
  pods,
  serviceAccounts,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { waitUntilStable } from '#test/harness/wait-until-stable.ts';
import { everything } from '#test/system/whole-clusters/inventory.ts';
import { capturedIo, isthmus, type Ran } from './captured-io.ts';
import { type KubeClient, openCluster } from './cluster/open.ts';
import { signedByCluster } from './gitops/client-certificate.ts';
import type { CheckReport, Finding } from './preflight/findings.ts';

let dir: string;
let server: TestApiServer;
let kube: KubeClient;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-check-'));
  const file = path.join(dir, 'admission.yaml');
  const defaults = { enforce: 'baseline', 'enforce-version': 'latest' };
  const configuration = {
    apiVersion: 'pod-security.admission.config.k8s.io/v1',
    kind: 'PodSecurityConfiguration',
    defaults,
  };
  await writeFile(
    file,
    yaml.stringify({
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'AdmissionConfiguration',
      plugins: [{ name: 'PodSecurity', configuration }],
    }),
  );
  server = await startApiServer({ controllerManager: true, flags: [`--admission-control-config-file=${file}`] });
  kube = await openCluster({ kubeconfig: server.kubeconfigPath }, capturedIo({}));
  await kube.create(nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' } },
    spec: { podCIDR: '10.200.0.0/24', podCIDRs: ['10.200.0.0/24'] },
  });
  // kube-controller-manager fills each namespace, and the rules of aggregated roles, a while after the API server is ready.
  await eventually('each namespace to have its account and its certificate authority', async () => {
    const names = (await kube.list(namespaces)).map(({ metadata }) => metadata.name);
    const now = await inventory();
    return names.every((name) =>
      [`configmaps ${name}/kube-root-ca.crt`, `serviceaccounts ${name}/default`].every((key) => now.has(key)),
    );
  });
  await waitUntilStable('the cluster before the first check', async () => [...(await inventory())].sort());
}, 900_000);
afterAll(async () => {
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

const check = (more = '', kubeconfig = server.kubeconfigPath): Promise<Ran> =>
  isthmus(`check --kubeconfig ${kubeconfig}${more}`.split(' '));
const reachable = ' --api-server-url https://rome.example.com:6443';
const reported = ({ out }: Ran): CheckReport => JSON.parse(out) as CheckReport;
const of = (report: CheckReport, name: string): Finding | undefined =>
  report.findings.find((one) => one.check === name);

async function inventory(): Promise<ReadonlyMap<string, string>> {
  const connection = await connectKubeconfig(server.kubeconfig, { clock: systemClock });
  try {
    const found = await everything(createKubeApi(connection, { clock: systemClock, log: silentLog }));
    const lasting = found.filter(({ resource }) => !/^(leases|nodes)\b/.test(resource));
    return new Map(
      lasting.map(({ resource, object: { metadata, ...content } }) => [
        `${resource} ${metadata.namespace}/${metadata.name}`,
        JSON.stringify({ ...content, status: undefined }),
      ]),
    );
  } finally {
    connection.close();
  }
}

describe('isthmus check', () => {
  test('says of a cluster that fits what is adapted, ends well, and has changed nothing', async () => {
    const before = await inventory();
    const ran = await check(`${reachable} -o json`);
    expect(ran.code, ran.err).toBe(0);
    const report = reported(ran);
    expect(report).toMatchObject({ kubernetes: expect.stringMatching(/^v1\./), profile: 'generic' });
    expect(of(report, 'version')).toMatchObject({ outcome: 'ok' });
    expect(of(report, 'rights')).toMatchObject({ outcome: 'ok' });
    expect(of(report, 'clock')).toMatchObject({ outcome: 'ok' });
    expect(of(report, 'pod-security')).toMatchObject({
      outcome: 'adapted',
      text: expect.stringContaining('baseline:latest'),
    });
    expect(of(report, 'ranges')?.text).toContain('10.200.0.0/16');
    expect(of(report, 'credentials')).toMatchObject({ outcome: 'unknown' });
    expect(await inventory()).toEqual(before);
  }, 60_000);

  test('prints a line for each finding', async () => {
    const { out } = await check(reachable);
    expect(out.split('\n')[0]).toMatch(/^CHECK +OUTCOME +FINDING$/);
    expect(out).toMatch(/^gateways +adapted +no Service of type LoadBalancer/m);
  });

  // The kubeconfig of these servers names loopback.
  test('stops at a loopback URL with the address that the cluster itself uses, and at overlapping ranges, both at once', async () => {
    const { code, out, err } = await check(' --internal-cidr 10.200.0.0/16');
    expect(code, err).toBe(6);
    expect(err).toContain('2 checks stop');
    expect(err).toMatch(/--api-server-url https:\/\/[\d.]+:\d+/);
    expect(err).toContain('overlaps --pod-cidr');
    expect(out).toMatch(/^api-url +stop/m);
    const ignored = await check(' --internal-cidr 10.200.0.0/16 --ignore-check api-url');
    expect([ignored.code, ignored.err]).toEqual([2, expect.stringMatching(/overlaps --pod-cidr[\s\S]*invalid_input/)]);
  });

  test('says which credentials consumers would get, by what the cluster has signed and what its controller manager is given', async () => {
    const ofCredentials = async (more = ''): Promise<Finding | undefined> =>
      of(reported(await check(`${reachable} -o json${more}`)), 'credentials');
    const manager = { namespace: 'kube-system', name: 'kube-controller-manager-n1' };
    await kube.create<Pod>(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: manager,
      spec: {
        hostNetwork: false,
        containers: [
          { name: 'it', image: 'isthmus.test/none', command: ['kube-controller-manager', '--bind-address=::'] },
        ],
      },
    });
    expect(await ofCredentials()).toMatchObject({
      outcome: 'adapted',
      text: expect.stringMatching(
        /^consumers get tokens: kube-controller-manager runs without --cluster-signing-key-file/,
      ),
    });
    expect(await ofCredentials(' --credentials certificate')).toMatchObject({
      outcome: 'stop',
      remedy: expect.stringContaining('--credentials auto'),
    });
    await kube.delete(pods, manager);
    const subject = { commonName: 'nobody', organization: 'isthmus.test' };
    const request = buildCertificateRequest(subject, generateClusterKeys().privateKey);
    await signedByCluster(capturedIo({}), kube, request, { name: 'signed-here', exact: true });
    expect(await ofCredentials()).toMatchObject({
      outcome: 'ok',
      text: 'consumers get certificates: the signer signed signed-here',
    });
    await kube.delete(certificateSigningRequests, { name: 'signed-here' });
  }, 60_000);

  test('tells a user without rights how to get them, and install changes nothing either', async () => {
    const tokens: ResourceType = { ...serviceAccounts, plural: 'serviceaccounts/default/token' };
    const ref = { namespace: 'default', name: 'default' };
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: ref, spec: {} };
    const { status } = (await kube.create<KubeObject>(tokens, request)) as unknown as { status: { token: string } };
    const file = path.join(dir, 'view.kubeconfig');
    const config = yaml.parse(server.kubeconfig) as { users: { user: unknown }[] };
    for (const entry of config.users) entry.user = { token: status.token };
    await writeFile(file, yaml.stringify(config), { mode: 0o600 });
    const user = 'system:serviceaccount:default:default';
    const looked = await check(reachable, file);
    expect([looked.code, looked.err]).toEqual([3, expect.stringContaining(user)]);

    const read = { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list'] };
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'check-reads' } };
    await kube.create(clusterRoles, { ...role, rules: [read] });
    await kube.create(clusterRoleBindings, {
      ...role,
      kind: 'ClusterRoleBinding',
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'check-reads' },
      subjects: [{ kind: 'ServiceAccount', ...ref }],
    });
    const report = await eventually('the right to read', async () => {
      const { out } = await check(`${reachable} -o json`, file);
      return out === '' ? undefined : (JSON.parse(out) as CheckReport);
    });
    expect(of(report, 'rights')).toMatchObject({
      outcome: 'stop',
      code: 'kube_forbidden',
      text: expect.stringContaining(`${user} may not create namespaces`),
      remedy: expect.stringContaining(
        `create clusterrolebinding isthmus-installer --clusterrole=cluster-admin --user=${user}`,
      ),
    });

    const before = await inventory();
    const installed = await isthmus(`install --cluster-id rome --kubeconfig ${file}${reachable}`.split(' '));
    expect([installed.code, installed.err]).toEqual([3, expect.stringContaining('kube_forbidden')]);
    expect(await inventory()).toEqual(before);
  }, 60_000);
});
