import { expect, test } from 'vitest';
import { breachOf, placeOf } from './layers.ts';

const cases = [
  { what: 'up', from: 'agent/peering/keys/a.ts', to: 'agent/runtime/b.ts', typeOnly: false, breach: false },
  { what: 'down, a value', from: 'agent/runtime/a.ts', to: 'agent/peering/keys/b.ts', typeOnly: false, breach: true },
  { what: 'down, a type', from: 'agent/runtime/a.ts', to: 'agent/peering/keys/b.ts', typeOnly: true, breach: true },
  {
    what: 'right, a value',
    from: 'agent/network/ipam/a.ts',
    to: 'agent/network/plan/b.ts',
    typeOnly: false,
    breach: true,
  },
  {
    what: 'right, a type',
    from: 'agent/network/ipam/a.ts',
    to: 'agent/network/plan/b.ts',
    typeOnly: true,
    breach: false,
  },
  {
    what: 'left, a value',
    from: 'agent/network/plan/a.ts',
    to: 'agent/network/ipam/b.ts',
    typeOnly: false,
    breach: false,
  },
  {
    what: 'the wiring of a room',
    from: 'agent/network/node/a.ts',
    to: 'agent/network/network.ts',
    typeOnly: false,
    breach: true,
  },
  { what: 'the composition root', from: 'agent/broker/broker.ts', to: 'agent/config.ts', typeOnly: true, breach: true },
  {
    what: 'a folder below one that is named',
    from: 'agent/network/link/tunnel/a.ts',
    to: 'agent/network/overlay/served-node/b.ts',
    typeOnly: false,
    breach: true,
  },
  {
    what: 'another root, which the import law rules',
    from: 'agent/main.ts',
    to: 'kube/open-cluster.ts',
    typeOnly: false,
    breach: false,
  },
];

test.each(cases)('an import of $what: $from -> $to', ({ from, to, typeOnly, breach }) => {
  expect(breachOf({ from, to, typeOnly }) !== undefined).toBe(breach);
});

test('a folder that is in no line has no place', () => {
  expect(placeOf('agent/novelty/a.ts')).toBeUndefined();
  expect(placeOf('agent/network/novelty/a.ts')).toBeUndefined();
  expect(placeOf('agent/network/gateway/novelty/a.ts')?.folder).toBe('agent/network/gateway');
});
