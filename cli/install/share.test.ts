import { expect, test } from 'vitest';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { shareInWords } from './share.ts';

const policy = (asProvider: Partial<NonNullable<PeeringPolicy['spec']['asProvider']>>): PeeringPolicy =>
  ({
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'default' },
    spec: { asProvider: { enabled: true, sharePercent: 90, ...asProvider } },
  }) as unknown as PeeringPolicy;
const node = (name: string, labels: Record<string, string> = {}, spec: Node['spec'] = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels },
  spec,
  status: {
    allocatable: { cpu: '2', memory: '4Gi', pods: '110' },
    conditions: [{ type: 'Ready', status: 'True' }],
  },
});
const pod = (nodeName: string, phase: string, labels: Record<string, string> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `${nodeName}-${phase}`, namespace: 'demo', labels },
  spec: { nodeName, containers: [{ name: 'app', resources: { requests: { cpu: '1', memory: '2Gi' } } }] },
  status: { phase },
});

test('joining prints what is free of the nodes that take pods, less what own pods request and guests do not', () => {
  const nodes = [
    node('worker'),
    node('virtual', { 'liqo.io/type': 'virtual-node' }),
    node('closed', {}, { unschedulable: true }),
    node('reserved', {}, { taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }] }),
  ];
  const pods = [
    pod('worker', 'Running'),
    pod('worker', 'Succeeded'),
    pod('worker', 'Pending', { 'liqo.io/managed-by': 'shadowpod' }),
    pod('virtual', 'Running'),
  ];
  expect(shareInWords(policy({}), nodes, pods)).toBe(
    'shares with peers 90 % of what its own pods leave free, now cpu 900m, memory 1843Mi, pods 98 (PeeringPolicy default, spec.asProvider.sharePercent)',
  );
  expect(shareInWords(policy({ elastic: true }), nodes, pods)).toContain('whatever they ask for');
  expect(shareInWords(policy({ enabled: false }), nodes, pods)).toContain('shares nothing');
});
