import { expect, test } from 'vitest';
import { askedBy, lacking, unused } from './used-rights.ts';

const at = '2026-01-01T00:00:10.000000Z';
const line = (verb: string, objectRef: object, decision: string, username = 'agent', time = at): string =>
  JSON.stringify({
    stage: 'ResponseComplete',
    verb,
    requestReceivedTimestamp: time,
    user: { username },
    objectRef,
    annotations: { 'authorization.k8s.io/decision': decision },
  });
const pods = { resource: 'pods', namespace: 'demo', apiVersion: 'v1' };
const since = Date.parse('2026-01-01T00:00:00Z');

test('a right that was refused counts as lacking unless it was granted later in that namespace', () => {
  const log = [
    line('create', pods, 'forbid'),
    line('create', { ...pods, namespace: 'other' }, 'forbid'),
    line('create', pods, 'allow'),
    line('list', { resource: 'leases', apiGroup: 'coordination.k8s.io' }, 'forbid'),
    line('patch', { ...pods, subresource: 'status' }, 'allow'),
    line('delete', pods, 'forbid', 'another'),
    line('delete', pods, 'forbid', 'agent', '2025-01-01T00:00:00Z'),
    '',
  ].join('\n');
  const asked = askedBy(log, 'agent', since);
  expect(lacking(asked)).toEqual(['create pods in other', 'list coordination.k8s.io/leases in the cluster']);
  const rule = { apiGroups: [''], resources: ['pods'], verbs: ['create', 'get'] };
  expect(unused([rule], asked)).toEqual(['get pods']);
  expect(asked.filter(({ granted }) => granted).map(({ right }) => right)).toEqual([
    'create pods',
    'patch pods/status',
  ]);
});
