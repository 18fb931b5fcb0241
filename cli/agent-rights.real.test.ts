import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { mutatingWebhookConfigurations, namespaces, pods, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type BrokerLink, brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { type NamespaceOffloading, namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { freePort } from '#test/aws/free-port.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { runtimeWarnings } from '#test/harness/runtime-warnings.ts';
import { type BrokerChild, serveBroker } from './broker-child.ts';
import { capturedIo, isthmus, type Ran } from './captured-io.ts';
import { type KubeClient, openCluster } from './cluster/open.ts';

let dir = '';
let broker: BrokerChild;
let server: ApiServer;
let kube: KubeClient;
let agent: ChildProcess | undefined;
const log: string[] = [];
const root = path.resolve(import.meta.dirname, '..');
const account = { namespace: 'liqo', name: 'isthmus-agent' };

const cli = (line: string): Promise<Ran> =>
  isthmus(line.split(' '), { env: { ISTHMUS_CONFIG: path.join(dir, 'config.json') } });

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-rights-'));
  [server, broker] = await Promise.all([leaseApiServer(), serveBroker(path.join(dir, 'data'), '127.0.0.1:0')]);
  kube = await openCluster({ kubeconfig: server.kubeconfigPath }, capturedIo({}));
  await cli(`login ${broker.url} --ca-hash ${broker.caHash} --key ${broker.adminKey}`);
}, 900_000);
afterAll(async () => {
  agent?.kill('SIGTERM');
  await broker?.end('SIGTERM');
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

/** A kubeconfig with nothing but the rights of the agent's ServiceAccount. */
async function agentKubeconfig(): Promise<string> {
  const tokens: ResourceType = { ...serviceAccounts, plural: `serviceaccounts/${account.name}/token` };
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: { ...account }, spec: {} };
  const { status } = (await kube.create<KubeObject>(tokens, request)) as unknown as { status: { token: string } };
  const file = path.join(dir, 'agent.kubeconfig');
  const config = yaml.parse(server.kubeconfig) as { users: { user: unknown }[] };
  for (const entry of config.users) entry.user = { token: status.token };
  await writeFile(file, yaml.stringify(config), { mode: 0o600 });
  return file;
}

async function startAgent(): Promise<void> {
  agent = spawn(process.execPath, ['scripts/run.mjs', 'agent/main.ts', 'controller'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ISTHMUS_CLUSTER_ID: 'rome',
      ISTHMUS_API_SERVER_URL: server.url,
      ISTHMUS_KUBECONFIG: await agentKubeconfig(),
      ISTHMUS_HEALTH_PORT: '0',
      ISTHMUS_LOG_LEVEL: 'debug',
      ISTHMUS_WEBHOOK_PORT: String(await freePort()),
      POD_NAME: 'agent-0',
      POD_IP: '127.0.0.1',
    },
  });
  for (const stream of [agent.stdout, agent.stderr]) stream?.on('data', (chunk: Buffer) => log.push(chunk.toString()));
}

async function playKubelet(): Promise<void> {
  const now = new Date().toISOString();
  for (const pod of await kube.list<Pod>(pods, 'app.kubernetes.io/name=controller-manager')) {
    if (pod.status?.phase === 'Running') continue;
    await kube.mergePatch(
      pods,
      { namespace: 'liqo', name: `${pod.metadata.name}/status` },
      {
        status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }] },
      },
    );
  }
}

describe('the rights that join gives to the agent', () => {
  test('are enough for the agent to enrol, watch and report', async () => {
    const join = cli(
      `join rome --kubeconfig ${server.kubeconfigPath} --api-server-url ${server.url} --pod-cidr 10.200.0.0/16 --timeout 90s`,
    );
    let over = false;
    join.finally(() => {
      over = true;
    });
    await eventually(
      'join to end',
      async () => {
        await playKubelet().catch(() => undefined);
        // Its Deployment comes last, when all rights are given: a real one would start no sooner.
        if (agent === undefined && (await kube.list(pods, 'app.kubernetes.io/name=controller-manager')).length > 0)
          await startAgent();
        return over;
      },
      { withinMs: 100_000, everyMs: 250 },
    );
    const { code, err } = await join;
    expect([code, err, log.join('')]).toEqual([0, expect.any(String), expect.any(String)]);
  }, 120_000);

  test('are enough for what it does of itself and for offloading a namespace', async () => {
    await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'demo' } });
    // The API server of this test reaches no Service, hence no webhook.
    const ref = { namespace: 'demo', name: 'offloading' };
    await kube.create<NamespaceOffloading>(namespaceOffloadings, {
      apiVersion: 'offloading.liqo.io/v1beta1',
      kind: 'NamespaceOffloading',
      metadata: { ...ref, labels: { [label.webhookSkip]: 'true' } },
      spec: { namespaceMappingStrategy: 'DefaultName', podOffloadingStrategy: 'LocalAndRemote' },
    });
    await eventually('the agent to look at it', async () => {
      const object = await kube.get<NamespaceOffloading>(namespaceOffloadings, ref);
      return object?.status?.offloadingPhase === 'NoClusterSelected';
    });
    await kube.delete(namespaceOffloadings, ref);
    await eventually('the agent to release it', async () => !(await kube.get(namespaceOffloadings, ref)));
    await eventually('the link to be reported', async () => {
      const link = await kube.get<BrokerLink>(brokerLinks, { name: 'broker' });
      return link?.status?.connected;
    });
    await eventually(
      'its registration as admission',
      async () => (await kube.list<KubeObject>(mutatingWebhookConfigurations)).length > 0,
    );
    expect(log.join('')).toMatch(/controller started/);
    expect(
      log
        .join('')
        .split('\n')
        .filter((line) => /forbidden/i.test(line)),
    ).toEqual([]);
  });

  test.each([
    {
      what: 'make itself administrator',
      verb: 'bind',
      group: 'rbac.authorization.k8s.io',
      resource: 'clusterroles',
      name: 'cluster-admin',
    },
    { what: 'widen a role', verb: 'escalate', group: 'rbac.authorization.k8s.io', resource: 'clusterroles' },
    { what: 'change a role', verb: 'update', group: 'rbac.authorization.k8s.io', resource: 'clusterroles' },
    { what: 'impersonate', verb: 'impersonate', group: '', resource: 'users' },
    { what: 'run something on every node', verb: 'create', group: 'apps', resource: 'daemonsets' },
    { what: 'exec into pods', verb: 'create', group: '', resource: 'pods', subresource: 'exec' },
    {
      what: 'sign as the kubelet of a node',
      verb: 'approve',
      group: 'certificates.k8s.io',
      resource: 'signers',
      name: 'kubernetes.io/kube-apiserver-client-kubelet',
    },
    {
      what: 'change custom resource definitions',
      verb: 'update',
      group: 'apiextensions.k8s.io',
      resource: 'customresourcedefinitions',
    },
  ])('do not let it $what', async ({ verb, group, resource, name, subresource }) => {
    const reviews: ResourceType = {
      group: 'authorization.k8s.io',
      version: 'v1',
      kind: 'SubjectAccessReview',
      plural: 'subjectaccessreviews',
      namespaced: false,
    };
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      metadata: { name: '' },
      spec: {
        user: `system:serviceaccount:${account.namespace}:${account.name}`,
        groups: ['system:serviceaccounts', 'system:authenticated'],
        resourceAttributes: { verb, group, resource, ...(name && { name }), ...(subresource && { subresource }) },
      },
    };
    const { status } = (await kube.create<KubeObject>(reviews, review)) as unknown as { status: { allowed: boolean } };
    expect(status.allowed).toBe(false);
  });
});

test('the agent says nothing secret in its log', async () => {
  const config = JSON.parse(await readFile(path.join(dir, 'config.json'), 'utf8')) as { key: string };
  expect(log.join('')).not.toContain(config.key);
  expect(log.join('')).not.toContain('isthmus1.');
});

test('the agent is warned of no leak by Node', () => {
  expect(log.join('')).toContain('"level"');
  expect(runtimeWarnings(log.join(''))).toEqual([]);
});
