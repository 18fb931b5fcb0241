import { describe, expect, test } from 'vitest';
import type { Peering } from '#shared/schema/api/resources.ts';
import { describePeering } from './describe.ts';
import { nextStep } from './next-step.ts';

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const peering: Peering = {
  id: 'pe_1',
  consumer: 'rome',
  provider: 'milan',
  resources: { cpu: '2', memory: '4Gi' },
  class: 'default',
  labels: { team: 'shop', stage: 'prod' },
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
  owner: { kind: 'broker' },
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
Owner:    broker: change it with \`isthmus peer\`
Labels:   team=shop,stage=prod
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

test('says which fields of a report were left out', () => {
  const message = 'Connection gw-milan: latency is "fast": must be a number with ms, μs or s, or N/A';
  const warned = { ...peering, warnings: [{ side: 'consumer' as const, message }] };
  expect(describePeering(warned, plain, 0)).toContain(`Reports that could not be read in full:\n  rome: ${message}\n`);
});

test('says what a dead side left behind', () => {
  const gone = { ...peering, phase: 'Gone' as const, leftBehind: ['Namespace liqo-tenant-rome in milan'] };
  expect(describePeering(gone, plain, 0)).toContain(
    'Left behind on a dead side:\n  Namespace liqo-tenant-rome in milan',
  );
});

describe('the network', () => {
  const network = { enabled: true, gatewayLocation: 'provider' as const, mtu: 1340, inBand: false };
  const link = {
    server: 'milan',
    endpoint: '192.0.2.1:30000',
    serviceType: 'NodePort' as const,
    mtu: 1340,
    consumer: {
      status: 'Connected' as const,
      peerEndpoint: '192.0.2.1:30000',
      latency: '12ms',
      handshakeAgeSeconds: 45,
      mtu: 1320,
      packetLoss: 2,
      reportedAt: at(4),
    },
    provider: { status: 'Error' as const, mtu: 1340, reportedAt: at(9) },
  };
  const text = (over: Partial<Peering>) => describePeering({ ...peering, ...over }, plain, Date.parse(at(10)));

  test('is shown with both ends, latency, age of the handshake and the MTU found', () => {
    const shown = text({ network: { ...network, link } });
    expect(shown).toContain('Network:  milan is dialled at 192.0.2.1:30000 (NodePort)\n');
    expect(shown).toContain(`
Link:
  rome             Connected to milan at 192.0.2.1:30000: latency 12ms, 2 % lost, handshake 45s old, MTU 1320 of 1340 (6s ago)
  milan            Error: MTU 1340 (1s ago)
`);
  });

  test('that is not there yet, or never will be, is said so', () => {
    expect(text({ network: { ...network, inBand: true } })).toContain(
      'Network:  wanted, at most 1340 bytes; API server through the link\n',
    );
    expect(text({ network: { ...network, enabled: false } })).toContain('Network:  none\n');
    expect(text({})).not.toContain('Network:');
  });
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

test('says which object inside the cluster has the last word', () => {
  const owned: Peering = { ...peering, owner: { kind: 'object', name: 'to-milan' } };
  expect(describePeering(owned, plain, Date.parse(at(10)))).toContain(
    'Owner:    Peering to-milan in rome: change it there',
  );
});
