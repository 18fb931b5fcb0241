import { expect, test } from 'vitest';
import { createKnownCallers } from './known-callers.ts';

test('credentials are known by their tenant from when they were found good until they are refused', () => {
  const { onMember, tenantOf } = createKnownCallers();
  expect(tenantOf('Bearer a')).toBeUndefined();
  onMember('Bearer a', 'acme');
  onMember('Bearer b', 'bolt');
  expect([tenantOf('Bearer a'), tenantOf('Bearer b'), tenantOf('Bearer'), tenantOf(undefined)]).toEqual([
    'acme',
    'bolt',
    undefined,
    undefined,
  ]);
  onMember('Bearer a', undefined);
  expect(tenantOf('Bearer a')).toBeUndefined();
});

test('of more than fit those are forgotten that were used longest ago', () => {
  const { onMember, tenantOf } = createKnownCallers(2);
  for (const one of ['a', 'b', 'a', 'c']) onMember(one, one);
  expect(['a', 'b', 'c'].map(tenantOf)).toEqual(['a', undefined, 'c']);
});
