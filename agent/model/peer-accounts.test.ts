/** Accounts of consumers: a user that only looks like one is never taken for it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Secret } from '#shared/domain/kube-object.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { accountFor, accountOf, accountSubjects, accountUser, asCertified, isAccount } from './peer-accounts.ts';
import { sliceUser } from './peer-user.ts';

const tenant = (consumer = 'rome', more: Record<string, string> = { 'liqo.io/tenant-namespace': 'true' }) => ({
  metadata: { name: 'liqo-tenant-rome', labels: { 'liqo.io/remote-cluster-id': consumer, ...more } },
});
const groups = ['system:serviceaccounts', 'system:authenticated'];
const peer = { name: accountUser('liqo-tenant-rome', accountOf(undefined)), groups };
const slice = { name: accountUser('liqo-tenant-rome', accountOf('milan')), groups };

describe('the user of a request', () => {
  test('is the consumer that its account in the tenant namespace belongs to', () => {
    expect(asCertified(peer, tenant())).toEqual({ name: 'rome', groups: ['liqo.io', ...groups] });
    expect(asCertified(slice, tenant())).toEqual({ name: sliceUser('milan', 'rome'), groups: ['rome', ...groups] });
  });

  test.each([
    ['the namespace is gone', peer, undefined],
    ['the namespace is one that was mapped for the consumer', peer, tenant('rome', {})],
    ['the namespace is another one', { name: accountUser('other', 'isthmus-peer'), groups }, tenant()],
    ['the account is another one', { name: accountUser('liqo-tenant-rome', 'default'), groups }, tenant()],
    ['the account only begins alike', { name: accountUser('liqo-tenant-rome', 'isthmus-peers'), groups }, tenant()],
    ['it is a user of that name', { name: 'isthmus-peer', groups }, tenant()],
    ['it names no slice', { name: accountUser('liqo-tenant-rome', 'isthmus-slice-'), groups }, tenant()],
  ])('is itself where %s', (_what, user, namespace) => {
    expect(asCertified(user, namespace)).toBe(user);
  });

  test('that is no account of a tenant namespace is never changed', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        fc.pre(!/^system:serviceaccount:liqo-tenant-rome:isthmus-(peer$|slice-.)/.test(name));
        const user = { name, groups };
        expect(asCertified(user, tenant())).toBe(user);
      }),
    );
  });
});

describe('the account that a token has to be of', () => {
  const identity = (spec: Partial<Identity['spec']>, labels: Record<string, string> = {}): Identity => ({
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: identities.kind,
    metadata: { name: 'x', labels },
    spec: { clusterID: 'milan', type: 'ControlPlane', authParams: {}, ...spec },
  });
  test('is that of the tenant namespace there, or of the slice', () => {
    expect(accountFor(identity({ namespace: 'liqo-tenant-rome' }))).toBe(peer.name);
    const ofSlice = identity({ type: 'ResourceSlice' }, { 'liqo.io/resourceslice-name': 'milan' });
    expect(accountFor(ofSlice)).toBe(':isthmus-slice-milan');
    expect(accountFor(identity({}))).toBeUndefined();
    expect(accountFor(identity({ type: 'ResourceSlice' }))).toBeUndefined();
  });

  test.each([
    [peer.name, peer.name, true],
    [slice.name, ':isthmus-slice-milan', true],
    [slice.name, ':isthmus-slice-turin', false],
    [peer.name, ':isthmus-slice-milan', false],
    ['eve:isthmus-slice-milan', ':isthmus-slice-milan', false],
    [accountUser('liqo-tenant-turin', 'isthmus-peer'), peer.name, false],
  ])('%s is %s: %s', (user, account, is) => {
    expect(isAccount(user, account)).toBe(is);
  });
});

test('only accounts with a Secret in their namespace have rights', () => {
  const secret = (namespace: string, of: string, deletionTimestamp?: string): Secret => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: of,
      namespace,
      labels: { 'isthmus.dev/credential-of': of },
      ...(deletionTimestamp && { deletionTimestamp }),
    },
  });
  const all = [
    secret('a', 'isthmus-slice-two'),
    secret('a', 'isthmus-slice-one'),
    secret('a', 'isthmus-peer'),
    secret('b', 'isthmus-slice-three'),
    secret('a', 'isthmus-slice-gone', '2026-01-01T00:00:00Z'),
  ];
  const named = (name: string) => ({ kind: 'ServiceAccount', namespace: 'a', name });
  expect(accountSubjects(all, 'a', 'slices')).toEqual([named('isthmus-slice-one'), named('isthmus-slice-two')]);
  expect(accountSubjects(all, 'a', 'control-plane')).toEqual([named('isthmus-peer')]);
  expect(accountSubjects(all, 'c', 'slices')).toEqual([]);
});
