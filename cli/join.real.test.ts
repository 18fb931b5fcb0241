import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ScriptedAgent } from '#functions/local/scripted-agent.ts';
import {
  configMaps,
  customResourceDefinitions,
  type DaemonSet,
  type Deployment,
  daemonSets,
  deployments,
  namespaces,
  pods,
  secrets,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod, Secret } from '#shared/domain/kube-object.ts';
import { lockText } from '#shared/domain/peering-lock.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { type PeeringLock, peeringLocks } from '#shared/schema/isthmus/peering-lock.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { type TrustedPeer, trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';
import { type NamespaceOffloading, namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { type BrokerChild, serveBroker } from './broker-child.ts';
import { capturedIo, isthmus, type Ran } from './captured-io.ts';
import { type KubeClient, openCluster } from './cluster/open.ts';

let dir = '';
let broker: BrokerChild;
let ca = '';
let server: TestApiServer;
let kube: KubeClient;
const liqo = { namespace: 'liqo' };

const cli = (line: string): Promise<Ran> =>
  isthmus(line.split(' '), { env: { ISTHMUS_CONFIG: path.join(dir, 'config.json') } });
const join = (more = ''): Promise<Ran> =>
  cli(
    `join rome --kubeconfig ${server.kubeconfigPath} --api-server-url ${server.url} --pod-cidr 10.200.0.0/16 --timeout 60s${more}`,
  );

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-join-'));
  [server, broker] = await Promise.all([
    startApiServer({ controllerManager: true }),
    serveBroker(path.join(dir, 'data'), '127.0.0.1:0'),
  ]);
  ca = await readFile(broker.caFile, 'utf8');
  kube = await openCluster({ kubeconfig: server.kubeconfigPath }, capturedIo({}));
  await cli(`login ${broker.url} --ca-hash ${broker.caHash} --key ${broker.adminKey}`);
}, 900_000);
afterAll(async () => {
  await broker?.end('SIGTERM');
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

/** There is no kubelet here: says of each pod of the agent that it runs. */
async function playKubelet(): Promise<void> {
  const now = new Date().toISOString();
  for (const pod of await kube.list<Pod>(pods, 'app.kubernetes.io/name=controller-manager')) {
    if (pod.status?.phase === 'Running') continue;
    await kube.mergePatch(
      { ...pods, plural: 'pods' },
      { ...liqo, name: `${pod.metadata.name}/status` },
      {
        status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }] },
      },
    );
  }
}

const agentKey = generateKeyPairSync('ed25519').privateKey;
const inPem = (key: KeyObject, type: 'pkcs8' | 'spki'): string =>
  Buffer.from(key.export({ type, format: 'pem' })).toString('base64');

/** Does what the agent does with its join Secret. */
async function playAgent(): Promise<ScriptedAgent | undefined> {
  const secret = await kube.get<Secret>(secrets, { ...liqo, name: 'isthmus-join' });
  const token = secret?.data?.token;
  if (token === undefined) return undefined;
  const agent = new ScriptedAgent(Buffer.from(token, 'base64').toString(), ca, agentKey);
  await kube.apply(
    secrets,
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...liqo, name: 'authentication-keys' },
      data: { privateKey: inPem(agentKey, 'pkcs8'), publicKey: inPem(createPublicKey(agentKey), 'spki') },
    } as KubeObject,
    'isthmus',
  );
  expect((await agent.enroll()).status).toBe(200);
  const { url, tenant, clusterId } = agent.token;
  await kube.apply(
    brokerLinks,
    {
      apiVersion: 'isthmus.dev/v1alpha1',
      kind: 'BrokerLink',
      metadata: { name: 'broker' },
      spec: { url, tenant, clusterId },
    } as KubeObject,
    'isthmus',
  );
  await kube.delete(secrets, { ...liqo, name: 'isthmus-join' });
  return agent;
}

async function withWorld<T>(work: Promise<T>): Promise<T> {
  let over = false;
  const done = work.finally(() => {
    over = true;
  });
  await eventually(
    'the command to end',
    async () => {
      await playKubelet().catch(() => undefined);
      await playAgent().catch(() => undefined);
      return over;
    },
    { withinMs: 90_000, everyMs: 150 },
  );
  return done;
}

describe('isthmus join', () => {
  test('installs the agent and connects the cluster', async () => {
    const { code, out, err } = await withWorld(join(' --labels region=eu,tier=gold'));
    expect([code, err]).toEqual([0, expect.stringContaining('ok broker')]);
    expect(out).toMatch(/^cluster rome is connected: Kubernetes v1\./);
    expect(err).toContain('shares with peers 90 % of what its own pods leave free');
    const agent = await kube.get<Deployment>(deployments, { ...liqo, name: 'isthmus-agent' });
    const container = agent?.spec?.template.spec?.containers[0];
    expect(container?.name).toBe('controller-manager');
    expect(container?.args).toEqual([
      'controller',
      `--api-server-address-override=${server.url}`,
      '--cluster-labels=region=eu,tier=gold',
      '--tls-compatibility-mode=false',
    ]);
    expect((await kube.get(configMaps, { ...liqo, name: 'liqo-clusterid-configmap' }))?.data).toEqual({
      CLUSTER_ID: 'rome',
    });
  });

  test('run again updates the agent, keeps what the administrator decided, and changes the share it is told', async () => {
    await kube.mergePatch(peeringPolicies, { name: 'default' }, { spec: { asProvider: { autoAccept: false } } });
    const { code, err } = await withWorld(join(' --image example.com/agent:2 --share-percent 50'));
    expect([code, err]).toEqual([0, expect.stringContaining('already joined')]);
    const policy = await kube.get<PeeringPolicy>(peeringPolicies, { name: 'default' });
    expect(policy?.spec.asProvider).toMatchObject({ autoAccept: false, sharePercent: 50 });
    const agent = await kube.get<Deployment>(deployments, { ...liqo, name: 'isthmus-agent' });
    expect(agent?.spec?.template.spec?.containers[0]?.image).toBe('example.com/agent:2');
  });

  test('refuses another name for the same cluster', async () => {
    const line = `join milan --kubeconfig ${server.kubeconfigPath} --api-server-url ${server.url}`;
    expect(await cli(line)).toMatchObject({ code: 5, err: expect.stringContaining('has joined as rome') });
  });

  test('asks how peers reach an API server that is on loopback', async () => {
    const { code, err } = await cli(`join rome --kubeconfig ${server.kubeconfigPath}`);
    expect([code, err]).toEqual([2, expect.stringContaining('--api-server-url')]);
  });
});

describe('the peering lock', () => {
  const lock = async () => (await kube.get<PeeringLock>(peeringLocks, { name: 'default' }))?.spec;
  const onRome = (line: string) => cli(`${line} --kubeconfig ${server.kubeconfigPath}`);
  const publicKeyOf = (key: KeyObject) => key.export({ type: 'spki', format: 'der' }).toString('base64');
  const other = publicKeyOf(createPublicKey(generateKeyPairSync('ed25519').privateKey));

  test('is in the cluster after a join: the key of the cluster, signed by the key of the administrator', async () => {
    const { out } = await cli('lock show');
    const { keys = [], own } = (await lock()) ?? {};
    expect(keys.map(({ key }) => key)).toEqual([out.trim()]);
    const { key = '', at = 0, signature = '' } = own?.signatures[0] ?? {};
    expect(key).toBe(out.trim());
    const der = createPublicKey(agentKey).export({ type: 'spki', format: 'der' });
    expect(own?.fingerprint).toBe(`sha256:${createHash('sha256').update(der).digest('hex')}`);
    const text = lockText({ tenant: 'default', clusterId: 'rome', fingerprint: own?.fingerprint ?? '', at });
    const signer = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' });
    expect(verify(null, Buffer.from(text), signer, Buffer.from(signature, 'base64'))).toBe(true);
  });

  test('signs once, and takes and gives up the keys of other administrators', async () => {
    const before = await lock();
    expect((await onRome('lock sign')).code).toBe(0);
    expect(await lock()).toEqual(before);
    expect(await onRome(`lock trust ${other}`)).toMatchObject({ code: 0, out: expect.stringContaining('2 lock keys') });
    expect((await lock())?.own).toEqual(before?.own);
    expect(await onRome(`lock trust ${other} --tenant globex`)).toMatchObject({ code: 0 });
    expect((await kube.get<PeeringLock>(peeringLocks, { name: 'globex' }))?.spec.keys).toEqual([{ key: other }]);
    expect((await onRome(`lock distrust ${other}`)).code).toBe(0);
    expect(await lock()).toEqual(before);
  });

  test('goes over to a new key when the administrator rotates it', async () => {
    const former = (await cli('lock show')).out.trim();
    const { out, err } = await cli('lock rotate');
    expect(out.trim()).not.toBe(former);
    expect(err).toContain(former);
    expect((await onRome('lock sign')).code).toBe(0);
    expect((await onRome(`lock distrust ${former}`)).code).toBe(0);
    expect((await lock())?.own?.signatures.map(({ key }) => key)).toEqual([out.trim()]);
    expect((await lock())?.keys.map(({ key }) => key)).toEqual([out.trim()]);
  });

  test('takes no lock key from an invitation that the broker refuses', async () => {
    const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
    const line = `redeem isi_bolt_1_${'x'.repeat(43)}~bolt~${other} rome --kubeconfig ${server.kubeconfigPath}`;
    expect(await cli(line)).toMatchObject({ code: 4, err: expect.stringContaining('no invitation has this code') });
    expect(await kube.get<PeeringLock>(peeringLocks, { name: 'bolt' })).toBeUndefined();
  });

  test('has beside it what an administrator agrees to by hand', async () => {
    const fingerprint = `sha256:${'a'.repeat(64)}`;
    expect((await onRome('trust milan')).code).toBe(2);
    expect((await onRome('trust milan --as provider')).code).toBe(0);
    expect((await onRome(`trust milan --fingerprint ${fingerprint} --as consumer`)).code).toBe(0);
    const trusted = await kube.get<TrustedPeer>(trustedPeers, { name: 'milan' });
    expect(trusted?.spec).toEqual({ fingerprint, consent: ['consumer', 'provider'] });
    expect((await onRome('trust milan --tenant bolt')).out).toContain('of account bolt');
    const named = await kube.get<TrustedPeer>(trustedPeers, { name: 'milan' });
    expect(named?.spec).toEqual({ fingerprint, tenant: 'bolt', consent: ['consumer', 'provider'] });
  });
});

describe('the network that isthmus join installs', () => {
  const network = async (name: string) => (await kube.get(networkKinds.networks, { ...liqo, name }))?.spec;

  test('knows the ranges of the cluster: those given, those found, and one of its own for peers', async () => {
    expect(await network('pod-cidr')).toEqual({ cidr: '10.200.0.0/16' });
    const found = await kube.list<KubeObject & { spec: { cidrs: string[] } }>({
      group: 'networking.k8s.io',
      version: 'v1',
      kind: 'ServiceCIDR',
      plural: 'servicecidrs',
      namespaced: false,
    });
    expect(await network('service-cidr')).toEqual({ cidr: found[0]?.spec.cidrs[0] });
    expect(await network('external-cidr')).toEqual({
      cidr: expect.stringMatching(/^10\.\d+\.0\.0\/16$/),
      preAllocated: 1,
    });
    expect(await network('internal-cidr')).toEqual({ cidr: '10.80.0.0/16' });
  });

  test('has its node process and both templates', async () => {
    const fabric = await kube.get<DaemonSet>(daemonSets, { ...liqo, name: 'isthmus-fabric' });
    expect(fabric?.spec?.template.spec?.containers[0]?.image).toBe('example.com/agent:2');
    for (const [type, name] of [
      [networkKinds.wgGatewayServerTemplates, 'wireguard-server'],
      [networkKinds.wgGatewayClientTemplates, 'wireguard-client'],
    ] as const) {
      expect((await kube.get<KubeObject>(type, { ...liqo, name }))?.metadata.name).toBe(name);
    }
  });

  test('takes more reserved ranges later, and keeps what is installed', async () => {
    const more = ' --reserved-subnet 172.16.0.0/12 --gateway-replicas 2 --full-masquerade';
    expect((await withWorld(join(more))).code).toBe(0);
    expect(await network('reserved-172-16-0-0-12')).toEqual({ cidr: '172.16.0.0/12' });
    expect((await withWorld(join())).code).toBe(0);
    const template = await kube.get(networkKinds.wgGatewayServerTemplates, { ...liqo, name: 'wireguard-server' });
    expect(template?.spec.template.spec?.deployment).toMatchObject({ spec: { replicas: 2 } });
    const fabric = await kube.get<DaemonSet>(daemonSets, { ...liqo, name: 'isthmus-fabric' });
    expect(fabric?.spec?.template.spec?.containers[0]?.env).toContainEqual({
      name: 'ISTHMUS_FULL_MASQUERADE',
      value: 'true',
    });
  });

  test.each([
    ['--external-cidr 10.71.0.0/16', /--external-cidr is 10\.71\.0\.0\/16, but 10\.\d+\.0\.0\/16 is installed/],
    [
      '--reserved-subnet 172.20.0.0/16',
      /--reserved-subnet is 172\.20\.0\.0\/16, which overlaps --reserved-subnet 172\.16/,
    ],
    ['--reserved-subnet 10.0.0.1/8', /accepted is 10\.0\.0\.0\/8/],
  ])('refuses %s', async (more, message) => {
    expect(await join(` ${more}`)).toMatchObject({ code: 2, err: expect.stringMatching(message) });
  });
});

describe('isthmus offload namespace', () => {
  const offload = (line: string): Promise<Ran> =>
    cli(`offload namespace ${line} --kubeconfig ${server.kubeconfigPath} --timeout 20s`);
  const ref = { namespace: 'demo', name: 'offloading' };
  beforeAll(async () => {
    await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'demo' } });
  });

  test('writes the NamespaceOffloading and waits for the agent', async () => {
    const running = offload('demo --strategy Remote --mapping EnforceSameName --selector region=eu');
    const written = await eventually('the object', () => kube.get<NamespaceOffloading>(namespaceOffloadings, ref));
    expect(written.spec).toEqual({
      podOffloadingStrategy: 'Remote',
      namespaceMappingStrategy: 'EnforceSameName',
      clusterSelector: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'region', operator: 'In', values: ['eu'] }] }],
      },
    });
    await kube.mergePatch(
      { ...namespaceOffloadings },
      { ...ref, name: 'offloading/status' },
      {
        status: {
          offloadingPhase: 'Ready',
          observedGeneration: written.metadata.generation,
          remoteNamespaceName: 'demo',
          remoteNamespacesConditions: { milan: [] },
        },
      },
    );
    expect(await running).toMatchObject({ code: 0, out: 'namespace demo is offloaded to milan as demo\n' });
  });

  test('twice is refused and changes nothing', async () => {
    const same = await offload('demo --strategy Remote --mapping EnforceSameName --selector region=eu');
    expect(same).toMatchObject({ code: 5, err: expect.stringContaining('exactly like this') });
    const other = await offload('demo --strategy Local');
    expect(other).toMatchObject({
      code: 5,
      err: expect.stringMatching(/podOffloadingStrategy is "Remote", asked for "Local"/),
    });
    expect((await kube.get<NamespaceOffloading>(namespaceOffloadings, ref))?.spec.podOffloadingStrategy).toBe('Remote');
  });

  test.each([
    { line: 'kube-system', code: 2, says: 'kube-system is a system namespace' },
    { line: 'liqo', code: 2, says: 'liqo is a system namespace' },
    { line: 'nowhere', code: 4, says: 'there is no namespace nowhere' },
    { line: 'No', code: 2, says: 'DNS-1123' },
    { line: 'demo --mapping SelectedName', code: 2, says: 'the name goes with SelectedName' },
    { line: 'demo --remote-namespace-name kube-public', code: 2, says: 'reserved' },
  ])('of $line is refused', async ({ line, code, says }) => {
    expect(await offload(line)).toMatchObject({ code, err: expect.stringContaining(says) });
  });

  test('is undone by unoffload, which is content when there is nothing to do', async () => {
    const undo = () => cli(`unoffload namespace demo --kubeconfig ${server.kubeconfigPath} --timeout 20s`);
    expect(await undo()).toMatchObject({ code: 0, out: 'namespace demo is no longer offloaded\n' });
    expect(await undo()).toMatchObject({ code: 0, out: expect.stringContaining('nothing to do') });
  });
});

describe('isthmus leave', () => {
  test('refuses the kubeconfig of another cluster', async () => {
    expect(await cli(`leave milan --kubeconfig ${server.kubeconfigPath}`)).toMatchObject({
      code: 2,
      err: expect.stringContaining('rome'),
    });
  });

  test('removes the agent and its rights, and with --purge the custom resource definitions', async () => {
    // As the controllers leave them: with finalizers that no controller removes any more.
    const left = ['test.example/finalizer'];
    const spec = { ip: '192.0.2.7' };
    const ip = {
      apiVersion: 'ipam.liqo.io/v1alpha1',
      kind: 'IP',
      metadata: { ...liqo, name: 'node-a', finalizers: left },
      spec,
    };
    await kube.create(networkKinds.ips, ip);
    const ends = { gateway: { name: 'x' }, node: { ip: '10.80.0.1' } };
    await kube.create(networkKinds.internalNodes, {
      apiVersion: 'networking.liqo.io/v1beta1',
      kind: 'InternalNode',
      metadata: { name: 'a', finalizers: left },
      spec: { interface: ends },
    });
    const dry = await cli(`leave rome --kubeconfig ${server.kubeconfigPath} --purge --dry-run`);
    expect([dry.code, dry.out], dry.err).toEqual([0, expect.stringMatching(/^at the broker: cluster rome\nKIND /)]);
    expect(dry.out).toMatch(/^InternalNode +- +a +removed$/m);
    expect(dry.out).toMatch(/^Namespace +- +liqo +removed$/m);
    const { code, out, err } = await cli(`leave rome --kubeconfig ${server.kubeconfigPath} --purge`);
    expect([code, out], err.slice(-600)).toEqual([0, 'cluster rome has left\nnothing of it is left\n']);
    expect(await kube.get(namespaces, { name: 'liqo' })).toBeUndefined();
    const roles = await kube.list<KubeObject>(
      {
        group: 'rbac.authorization.k8s.io',
        version: 'v1',
        kind: 'ClusterRole',
        plural: 'clusterroles',
        namespaced: false,
      },
      'app.kubernetes.io/part-of in (isthmus,liqo)',
    );
    expect(roles.map(({ metadata }) => metadata.name)).toEqual([]);
    expect(await kube.list(customResourceDefinitions)).toEqual([]);
    expect((await cli('get clusters')).err).toContain('no cluster has joined');
  });

  test('joins again as a new cluster', async () => {
    expect((await withWorld(join())).code).toBe(0);
  });
});
