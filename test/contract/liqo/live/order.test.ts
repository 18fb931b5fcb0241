import { expect, test } from 'vitest';
import { renews } from '#shared/schema/liqo/renew.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';
import type { AuditObject, Write } from './audit.ts';
import { type Place, type Seen, stepsOf } from './capture.ts';
import { inOrder } from './order.ts';
import { Words } from './words.ts';

interface Written {
  readonly name: string;
  readonly verb?: Write['verb'];
  readonly revision?: number;
  readonly uid?: string;
  /** Seconds. */
  readonly from: number;
  readonly to?: number;
  readonly at?: Place;
  readonly more?: object;
}

const time = (second: number): string => `2026-01-01T00:00:${second.toFixed(3).padStart(6, '0')}Z`;

function wrote({ name, verb = 'update', revision, uid = name, from, to = from, at = 'milan', more }: Written): Seen {
  const metadata = {
    name: 'rome',
    namespace: 'ns',
    uid,
    ...(revision !== undefined && { resourceVersion: `${revision}` }),
  };
  const object: AuditObject =
    verb === 'delete'
      ? ({ kind: 'Status', details: { uid } } as AuditObject)
      : ({
          apiVersion: 'authentication.liqo.io/v1beta1',
          kind: 'Tenant',
          metadata: { ...metadata, ...more },
        } as AuditObject);
  const write: Write = {
    ...{ user: name, groups: [], program: 'x', verb, type: verb === 'delete' ? renews : tenants, namespace: 'ns' },
    ...{
      name: 'rome',
      subresource: undefined,
      request: object,
      response: object,
      at: time(from),
      answeredAt: time(to),
    },
  };
  return { at, write };
}

const names = (all: readonly Seen[]): string[] => inOrder(all).map(({ write }) => write.user);

test('of two writes of which the first to come took effect second, each step has what its own write changed', () => {
  const of = (cordon: boolean, condition: string): object => ({
    ...(cordon && { annotations: { cordon: 'true' } }),
    labels: { condition } satisfies Tenant['metadata']['labels'],
  });
  const all = [
    wrote({ name: 'liqo', verb: 'create', uid: 'u', revision: 1, from: 1, more: of(true, 'Cordoned') }),
    wrote({ name: 'isthmus', uid: 'u', revision: 3, from: 2, to: 2.4, more: of(false, 'Active') }),
    wrote({ name: 'liqo', uid: 'u', revision: 2, from: 2.1, to: 2.2, more: of(false, 'Cordoned') }),
  ];
  const steps = stepsOf(
    inOrder(all),
    new Words({}),
    ({ user }) => user,
    () => true,
  );
  expect(steps.slice(1).map(({ by, update, expect: wanted }) => [by, update?.metadata ?? wanted?.metadata])).toEqual([
    ['liqo', { name: 'rome', namespace: 'ns', annotations: {} }],
    ['isthmus', { name: 'rome', namespace: 'ns', labels: { condition: 'Active' } }],
  ]);
});

test('a deletion, whose answer has no revision, follows what was written to its object and what was over before', () => {
  const all = [
    wrote({ name: 'before', revision: 5, from: 1 }),
    wrote({ name: 'slow', revision: 9, from: 2, to: 8 }),
    wrote({ name: 'deletion', verb: 'delete', uid: 'u', from: 3, to: 4 }),
    wrote({ name: 'last of it', uid: 'u', revision: 6, from: 3.5, to: 4.5 }),
    wrote({ name: 'after', revision: 7, from: 5 }),
  ];
  const expected = ['before', 'last of it', 'deletion', 'after', 'slow'];
  expect(names(all)).toEqual(expected);
  expect(names(all.toReversed())).toEqual(expected);
});

test('two API servers count by themselves: their writes are in the order of time, without changing that of either', () => {
  const all = [
    wrote({ name: 'm1', revision: 101, from: 3, at: 'milan' }),
    wrote({ name: 'm2', revision: 102, from: 1, to: 3.5, at: 'milan' }),
    wrote({ name: 'r1', revision: 7, from: 2, at: 'rome' }),
    wrote({ name: 'r2', revision: 8, from: 4, at: 'rome' }),
  ];
  const expected = ['r1', 'm1', 'm2', 'r2'];
  expect(names(all)).toEqual(expected);
  expect(names(all.toReversed())).toEqual(expected);
});

test('a write that changed nothing is left out, and one that took the last finalizer off is a deletion, though both are answered with an older revision', () => {
  const ending = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const all = [
    wrote({ name: 'first', uid: 'u', revision: 5, from: 1 }),
    wrote({ name: 'cause', revision: 6, from: 2, at: 'milan' }),
    wrote({ name: 'effect', revision: 900, from: 3, at: 'rome' }),
    wrote({ name: 'nothing', uid: 'u', revision: 5, from: 4 }),
    wrote({ name: 'last finalizer', uid: 'u', revision: 5, from: 5, more: ending }),
    wrote({ name: 'later', revision: 7, from: 6 }),
  ];
  const expected = ['first', 'cause', 'effect', 'last finalizer', 'later'];
  expect(names(all)).toEqual(expected);
  expect(names(all.toReversed())).toEqual(expected);
});
