import { expect, test } from 'vitest';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { safeRules } from '../guests/decide.ts';
import { defaultsFor, levelFor, safeQuota } from './defaults.ts';

const policy = (namespaceDefaults: object): PeeringPolicy =>
  ({ metadata: { name: 'p' }, spec: { asProvider: { enabled: true, peers: ['*'], namespaceDefaults } } }) as never;
const isolation = () => ({ podSelector: {} });

test('a namespace of a consumer has a NetworkPolicy and a quota of storage without any policy', () => {
  expect(defaultsFor([], 'rome', safeRules, isolation)).toEqual({
    networkPolicy: { podSelector: {} },
    resourceQuota: safeQuota,
  });
});

test('what a policy says takes their place, and isolation can be switched off', () => {
  const own = { resourceQuota: { hard: {} }, limitRange: { limits: [] } };
  expect(defaultsFor([policy(own)], 'rome', { networkIsolation: false }, isolation)).toEqual(own);
});

test('the level of pod security follows the policy, and a stricter one that was set by hand stays', () => {
  expect(levelFor('privileged', { podSecurity: 'baseline' })).toBe('baseline');
  expect(levelFor(undefined, { podSecurity: 'baseline' })).toBe('baseline');
  expect(levelFor('baseline', { podSecurity: 'privileged' })).toBe('privileged');
  expect(levelFor('baseline', { podSecurity: 'restricted' })).toBe('restricted');
  expect(levelFor('restricted', { podSecurity: 'baseline' })).toBeUndefined();
  expect(levelFor('baseline', { podSecurity: 'baseline' })).toBeUndefined();
});
