/** What a concrete gateway says and runs, as tables. */
import { describe, expect, test } from 'vitest';
import { createWireGuardKeys } from '#agent/pki/wireguard-keys.ts';
import type { Condition } from '#kube/writes/conditions.ts';
import type { Node, Pod, Secret } from '#shared/domain/kube-object.ts';
import type { InternalNode } from '#shared/schema/liqo/internal-node.ts';
import { activePod } from './active-pod.ts';
import { statusOf, type WgFacts, wireGuardMode } from './decide.ts';
import { faultOfKeys } from './keys.ts';
import type { WireGuardMode } from './objects.ts';

const host = (name: string, unschedulable = false): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  spec: { unschedulable },
});
const says = (name: string, mode?: string): InternalNode => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'InternalNode',
  metadata: { name, ...(mode ? { annotations: { 'networking.isthmus.dev/wireguard': mode } } : {}) },
  spec: { interface: { gateway: { name: 'x' }, node: { ip: '10.80.0.1' } } },
});

describe('the pods of a gateway run WireGuard', () => {
  test.each<readonly [string, Node[], InternalNode[], WireGuardMode | undefined, WireGuardMode]>([
    ['in userspace while no node has reported its kernel', [host('a')], [], undefined, 'userspace'],
    [
      'by themselves where one node has none',
      [host('a'), host('b')],
      [says('a', 'kernel'), says('b', 'userspace')],
      undefined,
      'userspace',
    ],
    [
      'by themselves where one has not said',
      [host('a'), host('b')],
      [says('a', 'kernel'), says('b')],
      undefined,
      'userspace',
    ],
    [
      'in the kernel where all have it',
      [host('a'), host('b')],
      [says('a', 'kernel'), says('b', 'kernel')],
      undefined,
      'kernel',
    ],
    [
      'in the kernel where those that take pods have it',
      [host('a'), host('b', true)],
      [says('a', 'kernel')],
      undefined,
      'kernel',
    ],
    ['as they did, when that still works', [host('a')], [says('a', 'kernel')], 'userspace', 'userspace'],
    ['differently, when that would not work any more', [host('a')], [says('a', 'userspace')], 'kernel', 'userspace'],
    ['by themselves in a cluster without nodes', [], [], undefined, 'userspace'],
  ])('%s', (_what, hosts, internal, current, mode) => expect(wireGuardMode(hosts, internal, current)).toBe(mode));
});

const pod = (
  name: string,
  more: { active?: boolean; ip?: string; deleted?: boolean; at?: string; phase?: string } = {},
): Pod => {
  const { active = true, ip = '10.200.1.5', deleted = false, at = '2026-01-01T00:00:00Z', phase = 'Running' } = more;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      creationTimestamp: at,
      labels: active ? { 'networking.liqo.io/active': 'true' } : {},
      ...(deleted ? { deletionTimestamp: at } : {}),
    },
    spec: { nodeName: 'n1', containers: [] },
    status: { phase, podIP: ip },
  } as Pod;
};

describe('the active pod is', () => {
  test.each<readonly [string, Pod[], string | undefined]>([
    ['the one that is labelled', [pod('a', { active: false }), pod('b')], 'b'],
    ['none that ends', [pod('a', { deleted: true })], undefined],
    ['none without address', [pod('a', { ip: '' })], undefined],
    ['none that has failed', [pod('a', { phase: 'Failed' })], undefined],
    ['of two the younger', [pod('a'), pod('b', { at: '2026-01-01T00:00:05Z' })], 'b'],
    ['of two of one age always the same', [pod('b'), pod('a')], 'b'],
  ])('%s', (_what, pods, name) => {
    expect(activePod(pods)?.metadata.name).toBe(name);
    expect(activePod([...pods].reverse())?.metadata.name).toBe(name);
  });
});

describe('the Ready condition gives as reason', () => {
  const fine: WgFacts = {
    generation: 3,
    conditions: undefined,
    secret: { name: 'gw-p', namespace: 't' },
    secretTrouble: undefined,
    endpoint: { endpoint: { addresses: ['192.0.2.1'], port: 1 }, candidates: ['192.0.2.1:1'] },
    activePod: pod('a'),
    trouble: undefined,
    nowMs: 0,
  };
  const trouble = (reason: string) => ({ reason, message: reason });
  test.each<readonly [string, Partial<WgFacts>, string]>([
    ['True Ready', {}, 'all is there'],
    ['True Ready', { endpoint: undefined }, 'a client that no peer dials'],
    ['False NoActivePod', { activePod: undefined }, 'no pod is active'],
    ['False NoNodePort', { endpoint: trouble('NoNodePort'), activePod: undefined }, 'the endpoint before the pod'],
    [
      'False SecretMissing',
      { secretTrouble: trouble('SecretMissing'), endpoint: trouble('x') },
      'the keys before the endpoint',
    ],
    [
      'False NameTaken',
      { trouble: trouble('NameTaken'), secretTrouble: trouble('x') },
      'faults that only the user can fix come first',
    ],
  ])('%s', (expected, facts, _when) => {
    const [ready] = statusOf({ ...fine, ...facts }).conditions ?? [];
    expect(`${ready?.status} ${ready?.reason}`).toBe(expected);
    expect(ready?.observedGeneration).toBe(3);
  });

  test('an endpoint that is lost is no longer told', () => {
    expect(statusOf({ ...fine, endpoint: trouble('NoReadyNode') })).not.toHaveProperty('endpoint');
    expect(statusOf({ ...fine, activePod: undefined })).not.toHaveProperty('internalEndpoint');
  });

  test('an unchanged condition is not written again', () => {
    const first = statusOf(fine);
    expect(statusOf({ ...fine, conditions: first.conditions as readonly Condition[], nowMs: 60_000 })).toEqual(first);
  });
});

describe('a Secret', () => {
  const keys = createWireGuardKeys();
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
  const secret = (data: Record<string, string>): Secret => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 't' },
    data,
  });
  const privateKey = base64(keys.privateKey);
  const publicKey = base64(keys.publicKey);
  test.each<readonly [string, Record<string, string>, string | undefined]>([
    ['with both keys is fine', { privateKey, publicKey }, undefined],
    ['without private key is not', { publicKey }, 'no key privateKey'],
    ['without public key is not', { privateKey }, 'no key publicKey'],
    [
      'with text instead of bytes is not',
      { privateKey: base64(Buffer.from(privateKey)), publicKey },
      'privateKey is 44 bytes long, accepted: 32 raw bytes',
    ],
    [
      'whose keys are of different pairs is not',
      { privateKey, publicKey: base64(createWireGuardKeys().publicKey) },
      'publicKey does not belong to privateKey',
    ],
  ])('%s', (_what, data, fault) => {
    const said = faultOfKeys(secret(data));
    if (fault === undefined) expect(said).toBeUndefined();
    else expect(said).toContain(fault);
    expect(said ?? '').not.toContain(privateKey);
  });
});
