import { describe, expect, test } from 'vitest';
import type { Peering } from '#shared/schema/api/resources.ts';
import { describePeering, nextStep } from './describe.ts';

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const peering: Peering = {
  id: 'pe_1',
  consumer: 'rome',
  provider: 'milan',
  resources: { cpu: '2', memory: '4Gi' },
  class: 'default',
  phase: 'Negotiating',
  conditions: [
    { type: 'Consented', status: 'True', reason: 'SameTenant', message: '', side: 'both', since: at(0), action: '' },
    {
      type: 'NodeReady',
      status: 'False',
      reason: 'NoVirtualNode',
      message: 'rome has no node milan yet',
      side: 'consumer',
      since: at(2),
      action: 'look at the agent of rome',
    },
  ],
  waitingFor: 'rome to make its node',
  granted: { cpu: '2' },
  nodeName: 'milan',
  createdAt: at(0),
  phaseSince: { Connecting: at(0), Negotiating: at(1.5) },
  leftBehind: [],
  version: 3,
};
const plain = (_tone: unknown, text: string): string => text;

test('describes both ends, the timeline, what is waited for and what to do', () => {
  expect(describePeering(peering, plain, Date.parse(at(10)))).toBe(`Peering:  rome -> milan (pe_1)
Phase:    Negotiating for 8s
Class:    default
Asked:    cpu 2, memory 4Gi
Granted:  cpu 2
Node:     milan in rome
Age:      10s

Timeline:
  +0.0s     Connecting
  +1.5s     Negotiating

Conditions of both sides:
  ✓ Consented         SameTenant (for 10s)

Conditions of consumer rome:
  ✗ NodeReady         NoVirtualNode (for 8s)
      rome has no node milan yet
      to do: look at the agent of rome

Waiting for: rome to make its node
Next step:   look at the agent of rome
`);
});

test('says what a dead side left behind', () => {
  const gone = { ...peering, phase: 'Gone' as const, leftBehind: ['Namespace liqo-tenant-rome in milan'] };
  expect(describePeering(gone, plain, 0)).toContain(
    'Left behind on a dead side:\n  Namespace liqo-tenant-rome in milan',
  );
});

describe('the next step', () => {
  test.each([
    { phase: 'Ready', says: /isthmus offload namespace/ },
    { phase: 'Gone', says: /isthmus peer rome milan/ },
    { phase: 'Unpeering', says: /the end always comes/ },
    { phase: 'Connecting', says: /nothing but waiting/ },
  ] as const)('of a $phase peering without open actions is $says', ({ phase, says }) => {
    expect(nextStep({ ...peering, phase, conditions: [] })).toMatch(says);
  });
});
