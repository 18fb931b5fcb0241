import { expect, test } from 'vitest';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { isthmusLabel } from '#shared/domain/liqo-keys.ts';
import type { Peering } from '#shared/schema/isthmus/peering.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { type MadeOf, ownerText } from './owner.ts';

const brokers = { labels: { [isthmusLabel.peering]: 'pe_1' } };
const object = <T extends KubeObject>(kind: string, metadata: object, spec: object = {}): T =>
  ({ apiVersion: 'x/v1', kind, metadata: { name: 'one', ...metadata }, spec }) as unknown as T;
const tenant = (metadata: object, authzPolicy = 'KeysExchange') => object<Tenant>('Tenant', metadata, { authzPolicy });
const identity = (metadata: object) => object<Identity>('Identity', metadata);
const ask = (owner: string, provider = 'milan') =>
  ({ ...object<Peering>('Peering', {}, { provider }), status: { owner } }) as Peering;
const nothing: MadeOf = {
  peer: 'milan',
  tenant: undefined,
  identity: undefined,
  isDeclared: false,
  others: [],
  asks: [],
};

test.each<{ what: string; made: Partial<MadeOf>; owner: string }>([
  { what: 'nothing yet', made: {}, owner: '' },
  { what: 'asked for at the broker', made: { identity: identity(brokers) }, owner: 'broker' },
  { what: 'as yet a link only, of the broker', made: { others: [object('Configuration', brokers)] }, owner: 'broker' },
  {
    what: 'asked for by an object that has the last word',
    made: { identity: identity(brokers), asks: [ask('Broker', 'turin'), ask('Object')] },
    owner: 'Peering one',
  },
  {
    what: 'asked for by an object that leaves the last word to the broker',
    made: { identity: identity(brokers), asks: [ask('Broker')] },
    owner: 'broker',
  },
  { what: 'given by the broker', made: { tenant: tenant(brokers) }, owner: 'broker' },
  { what: 'declared by its credentials', made: { isDeclared: true }, owner: 'manifests' },
  { what: 'declared at the provider', made: { tenant: tenant({}, 'TolerateNoHandshake') }, owner: 'manifests' },
  { what: 'made by a handshake', made: { identity: identity({}) }, owner: 'liqoctl' },
  { what: 'given by a handshake', made: { tenant: tenant({}) }, owner: 'liqoctl' },
  {
    what: 'one way from Git, the other by the broker',
    made: { isDeclared: true, tenant: tenant(brokers) },
    owner: 'broker, manifests',
  },
])('a peering that is $what belongs to "$owner"', ({ made, owner }) => {
  expect(ownerText({ ...nothing, ...made })).toBe(owner);
});
