import { expect, test } from 'vitest';
import { isReflected, isRootCaReflected, isSliceReflected, type PolicyType } from './policy.ts';

const skip = 'liqo.io/skip-reflection';
const allow = 'liqo.io/allow-reflection';
const object = (annotations: Record<string, string> = {}) => ({ metadata: { name: 'x', annotations } });

test.each<{ type: PolicyType; annotations: Record<string, string>; is: boolean }>([
  { type: 'DenyList', annotations: {}, is: true },
  { type: 'DenyList', annotations: { [skip]: 'true' }, is: false },
  { type: 'DenyList', annotations: { [skip]: '' }, is: false },
  { type: 'DenyList', annotations: { [skip]: 'FALSE' }, is: true },
  { type: 'DenyList', annotations: { [allow]: 'true' }, is: true },
  { type: 'AllowList', annotations: {}, is: false },
  { type: 'AllowList', annotations: { [allow]: '' }, is: true },
  { type: 'AllowList', annotations: { [allow]: 'False' }, is: false },
  { type: 'AllowList', annotations: { [skip]: 'true', [allow]: 'true' }, is: true },
])('B091, B092, B093: $type with $annotations reflects: $is', ({ type, annotations, is }) => {
  expect(isReflected(object(annotations), type)).toBe(is);
});

test.each<{ type: PolicyType; slice: Record<string, string>; service?: Record<string, string>; is: boolean }>([
  { type: 'DenyList', slice: {}, service: { [skip]: 'true' }, is: false },
  { type: 'DenyList', slice: { [allow]: 'true' }, service: { [skip]: 'true' }, is: true },
  { type: 'DenyList', slice: { [skip]: 'true' }, service: {}, is: false },
  { type: 'AllowList', slice: {}, service: { [allow]: 'true' }, is: true },
  { type: 'AllowList', slice: {}, is: false },
  { type: 'AllowList', slice: { [allow]: 'true', [skip]: 'true' }, service: { [allow]: 'true' }, is: false },
])(
  'B094: a slice with $slice of a Service with $service under $type is reflected: $is',
  ({ type, slice, service, is }) => {
    expect(isSliceReflected(object(slice), service && object(service), type)).toBe(is);
  },
);

test('B093: the root CA stays here only when it says so itself', () => {
  expect([{}, { [skip]: 'true' }, { [skip]: 'false' }].map((one) => isRootCaReflected(object(one)))).toEqual([
    true,
    false,
    true,
  ]);
});
