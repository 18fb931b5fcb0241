/** The summary of a peer, as tables. */
import { describe, expect, test } from 'vitest';
import type { Node } from '#shared/domain/kube-object.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { isAnything, type PeerFacts, peeringTypeOf, summarise } from './decide.ts';
import { noNetwork } from './network.ts';
import { buildForeignCluster } from './object.ts';

const none: PeerFacts = {
  tenant: undefined,
  identity: undefined,
  declaredServer: undefined,
  virtualNodes: [],
  nodes: [],
  network: noNetwork,
  health: undefined,
  credentialsEndMs: undefined,
  nowMs: Date.UTC(2026, 0, 1),
};
const tenant = (status?: Tenant['status'], authzPolicy: Tenant['spec']['authzPolicy'] = 'KeysExchange'): Tenant => ({
  apiVersion: 'v',
  kind: 'Tenant',
  metadata: { name: 'p' },
  spec: { clusterID: 'p', authzPolicy, tenantCondition: 'Active' },
  ...(status === undefined ? {} : { status }),
});
const identity = (ready: boolean): Identity => ({
  apiVersion: 'v',
  kind: 'Identity',
  metadata: { name: 'controlplane-p', namespace: 'liqo-tenant-p' },
  spec: {
    clusterID: 'p',
    type: 'ControlPlane',
    authParams: { apiServer: 'https://p:6443' },
    namespace: 'liqo-tenant-me',
  },
  ...(ready ? { status: { kubeconfigSecretRef: { name: 's' } } } : {}),
});
const virtualNode = (running: boolean, createNode = true): VirtualNode => ({
  apiVersion: 'v',
  kind: 'VirtualNode',
  metadata: { name: 'n' },
  spec: { clusterID: 'p', createNode },
  status: { conditions: [{ type: 'VirtualKubelet', status: running ? 'Running' : 'Creating' }] },
});
/** Kept without a Node while the provider drains its slice, as its controller writes it. */
const drained: VirtualNode = {
  ...virtualNode(true),
  status: {
    conditions: [
      { type: 'VirtualKubelet', status: 'Running' },
      { type: 'Node', status: 'None', reason: 'Drained' },
    ],
  },
};
const node = (ready: boolean): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n' },
  status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
});
const of = (facts: Partial<PeerFacts>) => summarise(buildForeignCluster('p'), { ...none, ...facts });
const states = (module: {
  conditions?: { type: string; status?: string; reason?: string | undefined }[] | undefined;
}): string[] => (module.conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`);

describe('a summary', () => {
  test.each<[string, Partial<PeerFacts>, string]>([
    ['nothing', {}, 'Unknown'],
    ['a Tenant', { tenant: tenant() }, 'Consumer'],
    ['an Identity', { identity: identity(true) }, 'Provider'],
    ['a declared kubeconfig', { declaredServer: 'https://p' }, 'Provider'],
    ['a VirtualNode', { virtualNodes: [virtualNode(true)] }, 'Provider'],
    ['both', { tenant: tenant(), identity: identity(true) }, 'ConsumerAndProvider'],
  ])('of a peer with %s has role %s', (_name, facts, role) => expect(of(facts).role).toBe(role));

  test.each<[string, Tenant, string]>([
    ['without anything', tenant(), 'NotReady TenantNotReady'],
    ['with a namespace only', tenant({ tenantNamespace: 'x' }), 'NotReady TenantNotReady'],
    [
      'with a namespace only, without handshake',
      tenant({ tenantNamespace: 'x' }, 'TolerateNoHandshake'),
      'Ready TenantReady',
    ],
    ['complete', tenant({ tenantNamespace: 'x', authParams: { signedCRT: 'eA==' } }), 'Ready TenantReady'],
  ])('of a Tenant %s', (_name, one, condition) => {
    expect(states(of({ tenant: one }).modules.authentication)).toEqual([`AuthTenantStatus ${condition}`]);
  });

  test.each<[string, Partial<PeerFacts>, string[]]>([
    ['none', {}, []],
    [
      'all ready',
      { virtualNodes: [virtualNode(true)], nodes: [node(true)] },
      ['OffloadingVirtualNodeStatus Ready VirtualNodesReady', 'OffloadingNodeStatus Ready NodesReady'],
    ],
    [
      'some',
      { virtualNodes: [virtualNode(true), virtualNode(false)], nodes: [node(true), node(false)] },
      [
        'OffloadingVirtualNodeStatus SomeNotReady VirtualNodesSomeNotReady',
        'OffloadingNodeStatus SomeNotReady NodesSomeNotReady',
      ],
    ],
    [
      'none ready',
      { virtualNodes: [virtualNode(false)] },
      ['OffloadingVirtualNodeStatus NotReady VirtualNodesNotReady', 'OffloadingNodeStatus NotReady NodesNotReady'],
    ],
    [
      'no Node wanted',
      { virtualNodes: [virtualNode(true, false)] },
      ['OffloadingVirtualNodeStatus Ready VirtualNodesReady', 'OffloadingNodeStatus Ready NodesReady'],
    ],
    [
      'one drained by the provider',
      { virtualNodes: [drained] },
      ['OffloadingVirtualNodeStatus Ready VirtualNodesReady', 'OffloadingNodeStatus Ready NodesReady'],
    ],
    [
      'one drained, and the Node of another one missing',
      { virtualNodes: [drained, virtualNode(true)] },
      ['OffloadingNodeStatus NotReady NodesNotReady', 'OffloadingVirtualNodeStatus Ready VirtualNodesReady'],
    ],
  ])('of offloading with %s', (_name, facts, conditions) => {
    const { offloading } = of(facts).modules;
    expect(states(offloading)).toEqual(conditions);
    expect(offloading.enabled).toBe(conditions.length > 0);
  });

  test('names both namespaces, the API server, and whether it answers', () => {
    const facts = { identity: identity(true), health: { ok: false, message: 'connection refused' } };
    expect(of(facts)).toMatchObject({
      apiServerUrl: 'https://p:6443',
      tenantNamespace: { local: 'liqo-tenant-p', remote: 'liqo-tenant-me' },
      conditions: [
        { type: 'APIServerStatus', status: 'Error', reason: 'APIServerNotReady', message: 'connection refused' },
      ],
      modules: { networking: { enabled: false } },
    });
  });

  test.each([
    ['brought by a broker or liqoctl', { identity: identity(true) }, 'liqoctl authenticate --kubeconfig'],
    ['from manifests', { declaredServer: 'https://p:6443' }, 'isthmus generate peering --consumer'],
  ])('says when credentials %s have ended, and what renews them', (_how, held, command) => {
    const health = { ok: false, message: 'it refuses our credentials: 401' };
    const [said] = of({ ...held, health, credentialsEndMs: none.nowMs - 1_000 }).conditions ?? [];
    expect(said).toMatchObject({ type: 'APIServerStatus', status: 'Error', reason: 'CertificateExpired' });
    expect(said?.message).toMatch(/our credentials for p ended at 2025-12-31T23:59:59Z; /);
    expect(said?.message).toContain(command);
    const [early] = of({ ...held, health, credentialsEndMs: none.nowMs + 1_000 }).conditions ?? [];
    expect(early).toMatchObject({ reason: 'APIServerNotReady', message: 'it refuses our credentials: 401' });
  });

  test('moves a transition time only with its status', () => {
    const facts = { ...none, tenant: tenant() };
    const foreign = { ...buildForeignCluster('p'), status: summarise(buildForeignCluster('p'), facts) };
    expect(summarise(foreign, { ...facts, nowMs: facts.nowMs + 5_000 })).toEqual(foreign.status);
    const ready = summarise(foreign, {
      ...facts,
      nowMs: facts.nowMs + 5_000,
      tenant: tenant({ tenantNamespace: 'x', authParams: {} }),
    });
    expect(ready.modules.authentication.conditions?.[0]?.lastTransitionTime).toBe('2026-01-01T00:00:05Z');
  });
});

test('a peer of which nothing is left needs no summary', () => {
  expect(isAnything(none, 0)).toBe(false);
  expect(isAnything(none, 1)).toBe(true);
  expect(isAnything({ ...none, tenant: tenant() }, 0)).toBe(true);
});

test.each<[string, Partial<PeerFacts>, string]>([
  ['gives nothing', { tenant: tenant() }, ''],
  ['is asked directly', { identity: identity(true) }, 'OutOfBand'],
  ['is asked by a kubeconfig of a Secret', { declaredServer: 'https://p' }, 'OutOfBand'],
  ['is asked by one with a proxy', { declaredServer: 'https://p', declaredProxy: 'http://10.70.0.4:8118' }, 'InBand'],
  [
    'is asked through the link',
    {
      identity: {
        ...identity(true),
        spec: {
          ...identity(true).spec,
          authParams: { ...identity(true).spec.authParams, proxyURL: 'http://10.70.0.4:8118' },
        },
      },
    },
    'InBand',
  ],
])('a peer that %s', (_what, facts, type) => expect(peeringTypeOf({ ...none, ...facts })).toBe(type));

test('what is not Ready stands first, where kubectl looks', () => {
  const both = of({ tenant: tenant({ tenantNamespace: 'x' }, 'TolerateNoHandshake'), identity: identity(false) });
  expect(both.modules.authentication.conditions?.map(({ status }) => status)).toEqual(['NotReady', 'Ready']);
  const offloading = of({ virtualNodes: [virtualNode(true)], nodes: [node(false)] }).modules.offloading;
  expect(offloading.conditions?.map(({ status }) => status)).toEqual(['NotReady', 'Ready']);
});
