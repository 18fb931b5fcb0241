/** Which gateway counts, whose key it needs, and what it says, as tables. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import { type Gateway, gatewayStatus, keyTrouble, rivalOf, type StatusInput } from './decide.ts';

const gateway = (
  name: string,
  second: number,
  more: { kind?: string; peer?: string; deleted?: boolean } = {},
): Gateway => {
  const { kind = 'GatewayServer', peer = 'milan', deleted = false } = more;
  const at = `2026-01-01T00:00:0${second}Z`;
  return {
    apiVersion: 'networking.liqo.io/v1beta1',
    kind,
    metadata: {
      name,
      namespace: 't',
      uid: `${kind}-${name}`,
      generation: 2,
      creationTimestamp: at,
      labels: { 'liqo.io/remote-cluster-id': peer },
      ...(deleted ? { deletionTimestamp: at } : {}),
    },
    spec: { endpoint: { port: 1, serviceType: 'ClusterIP' } },
  };
};

describe('a gateway is refused', () => {
  const own = gateway('b', 5);
  test.each<readonly [string, Gateway[], boolean]>([
    ['for an older one', [gateway('a', 1)], true],
    ['for an older client', [gateway('a', 1, { kind: 'GatewayClient' })], true],
    ['not for a younger one', [gateway('a', 7)], false],
    ['not for one of another peer', [gateway('a', 1, { peer: 'rome' })], false],
    ['not for one that is going', [gateway('a', 1, { deleted: true })], false],
    ['not for itself', [], false],
  ])('%s', (_what, others, refused) =>
    expect(rivalOf(own, 'milan', [own, ...others])?.reason).toBe(refused ? 'TwoGateways' : undefined),
  );

  test('so that exactly one of any number remains', () => {
    const kinds = fc.constantFrom('GatewayServer', 'GatewayClient');
    const some = fc.uniqueArray(
      fc.record({ name: fc.constantFrom('a', 'b', 'c'), kind: kinds, second: fc.integer({ min: 0, max: 3 }) }),
      { minLength: 1, maxLength: 6, selector: ({ name, kind }) => `${kind}/${name}` },
    );
    fc.assert(
      fc.property(some, (all) => {
        const gateways = all.map(({ name, kind, second }) => gateway(name, second, { kind }));
        expect(gateways.filter((one) => rivalOf(one, 'milan', gateways) === undefined)).toHaveLength(1);
      }),
    );
  });
});

const key = (name: string, labels: Record<string, string>, namespace = 't'): PublicKey => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'PublicKey',
  metadata: { name, namespace, labels },
  spec: { publicKey: '' },
});
const labels = { 'liqo.io/remote-cluster-id': 'milan', 'networking.liqo.io/gateway-resource': 'true' };

test.each<readonly [string, PublicKey[], string | undefined]>([
  ['none', [], 'PublicKeyMissing'],
  ['one', [key('a', labels)], undefined],
  ['one without the second label', [key('a', { 'liqo.io/remote-cluster-id': 'milan' })], 'PublicKeyMissing'],
  ['one in another namespace', [key('a', labels, 'other')], 'PublicKeyMissing'],
  ['two', [key('a', labels), key('b', labels)], 'AmbiguousPublicKey'],
])('of keys of the peer there is %s', (_what, keys, reason) =>
  expect(keyTrouble(keys, 't', 'milan')?.reason).toBe(reason),
);

describe('the status of a gateway', () => {
  const ready = (status: 'True' | 'False', reason: string) => ({
    type: 'Ready',
    status,
    reason,
    message: reason,
    lastTransitionTime: '',
  });
  const concrete = { apiVersion: 'g/v1', kind: 'Other', metadata: { name: 'b', namespace: 't' } };
  const input: StatusInput = {
    gateway: gateway('b', 1),
    refField: 'serverRef',
    concrete,
    status: {
      internalEndpoint: { ip: '10.0.0.1', node: 'n1' },
      endpoint: { addresses: ['a'], port: 1 },
      conditions: [ready('True', 'Ready')],
    },
    trouble: undefined,
    lastTrouble: undefined,
    nowMs: 0,
  };
  const trouble = (reason: string) => ({ reason, message: reason });
  test.each<readonly [string, Partial<StatusInput>, string]>([
    ['is Ready when all works', {}, 'True Ready'],
    [
      'is Ready by the endpoint of a transport without conditions',
      { status: { internalEndpoint: { ip: '10.0.0.1' } } },
      'True Ready',
    ],
    ['waits for what is to be rendered', { concrete: undefined, status: undefined }, 'False Rendering'],
    [
      'names its own trouble first',
      { trouble: trouble('TemplateMissing'), status: { conditions: [ready('False', 'x')] } },
      'False TemplateMissing',
    ],
    [
      'then that below',
      { status: { conditions: [ready('False', 'NoNodePort')] }, lastTrouble: trouble('x') },
      'False NoNodePort',
    ],
    ['then the key of the peer', { lastTrouble: trouble('PublicKeyMissing') }, 'False PublicKeyMissing'],
  ])('%s', (_what, change, expected) => {
    const { conditions } = gatewayStatus({ ...input, ...change }) as NonNullable<GatewayServer['status']>;
    expect(conditions?.map(({ status, reason }) => `${status} ${reason}`)).toEqual([expected]);
  });

  test('copies what the concrete gateway says; a client has no endpoint of its own', () => {
    expect(gatewayStatus(input)).toMatchObject({
      serverRef: { apiVersion: 'g/v1', kind: 'Other', name: 'b', namespace: 't' },
      endpoint: { addresses: ['a'], port: 1 },
      internalEndpoint: { ip: '10.0.0.1', node: 'n1' },
    });
    const client = gatewayStatus({ ...input, refField: 'clientRef' });
    expect(client).toHaveProperty('clientRef');
    expect(client).not.toHaveProperty('endpoint');
  });
});
