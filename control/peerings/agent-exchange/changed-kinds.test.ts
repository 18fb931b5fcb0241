import { expect, test } from 'vitest';
import { changedKinds } from './changed-kinds.ts';

const object = (kind: string, name: string, data: Record<string, unknown> = {}) => ({
  apiVersion: 'v1',
  kind,
  name,
  uid: `${kind}-${name}`,
  data,
});

test.each([
  { what: 'nothing', before: [object('Node', 'a')], after: [object('Node', 'a')], kinds: [] },
  { what: 'a new object', before: [], after: [object('Tenant', 'a')], kinds: ['Tenant'] },
  { what: 'a removed object', before: [object('Tenant', 'a')], after: [], kinds: ['Tenant'] },
  {
    what: 'data',
    before: [object('Node', 'a', { ready: false })],
    after: [object('Node', 'a', { ready: true })],
    kinds: ['Node'],
  },
  {
    what: 'the order of members',
    before: [object('Node', 'a', { x: 1, y: 2 })],
    after: [object('Node', 'a', { y: 2, x: 1 })],
    kinds: [],
  },
  {
    what: 'two kinds, one of them twice',
    before: [object('Node', 'a'), object('Secret', 's')],
    after: [object('Node', 'b'), object('Secret', 's', { signedNonce: 'x' })],
    kinds: ['Node', 'Secret'],
  },
])('a change of $what is a change of $kinds', ({ before, after, kinds }) => {
  expect(changedKinds(before, after)).toEqual(kinds);
});
