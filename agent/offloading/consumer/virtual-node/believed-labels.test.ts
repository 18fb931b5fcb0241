import { expect, test } from 'vitest';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { believedLabels } from './believed-labels.ts';

const policy = (peers: string[], nodeLabels?: Record<string, string[]>, enabled = true): PeeringPolicy => ({
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringPolicy',
  metadata: { name: 'p' },
  spec: {
    tenants: ['*'],
    asConsumer: { enabled, autoAccept: false, peers, ...(nodeLabels && { nodeLabels }) },
    reflectedKinds: [],
  },
});
const claimed = { region: 'eu', tier: 'gold', 'kubernetes.io/arch': 'arm64', __proto: 'x' };

test('of what a provider claims, architecture and operating system count, and nothing else that no policy lists', () => {
  for (const policies of [
    [],
    [policy(['*'])],
    [policy(['turin'], { region: ['*'] })],
    [policy(['*'], { region: ['*'] }, false)],
  ])
    expect(believedLabels(claimed, policies, 'milan')).toEqual({
      labels: { 'kubernetes.io/arch': 'arm64' },
      leftOut: ['__proto=x', 'region=eu', 'tier=gold'],
    });
});

test.each([
  ['its value', { region: ['us', 'eu'] }, { region: 'eu' }],
  ['any value', { region: ['*'] }, { region: 'eu' }],
  ['another value', { region: ['us'] }, {}],
  ['no value', { region: [] }, {}],
])('a label that a policy lists with %s is believed accordingly', (_what, listed, expected) => {
  const { labels } = believedLabels(claimed, [policy(['milan'], listed)], 'milan');
  expect(labels).toEqual({ 'kubernetes.io/arch': 'arm64', ...expected });
});

test('policies add up', () => {
  const both = [policy(['*'], { region: ['eu'] }), policy(['milan'], { tier: ['gold'] })];
  expect(Object.keys(believedLabels(claimed, both, 'milan').labels)).toEqual(['kubernetes.io/arch', 'region', 'tier']);
});
