import { expect, test } from 'vitest';
import { overlayDevice, type Route, routingTables } from './kernel-state.ts';
import { flowsOfOtherWays } from './stale-flows.ts';

const table = routingTables.node;
const gateway: Route = { table, destination: '10.80.0.2/32', device: overlayDevice };
const pods: Route = { table, destination: '10.51.0.0/16', device: overlayDevice, via: '10.80.0.2' };
const blocked: Route = { table, destination: '10.51.0.0/16', type: 'unreachable' };
const users: Route = { ...pods, destination: '192.0.2.0/24', configuration: 'default/mine' };
const state = { claimsFlows: true, routes: [gateway, pods, users] } as const;
const forgotten = (found: readonly Route[], begins = false) => flowsOfOtherWays(state, { routes: found }, begins);

test('flows that began before there was a way through the overlay are forgotten once, also where the way was blocked', () => {
  const all = [
    ['-D', '-d', '10.80.0.2/32'],
    ['-D', '-d', '10.51.0.0/16'],
  ];
  expect(forgotten([])).toEqual(all);
  expect(forgotten([blocked])).toEqual(all);
  expect(forgotten([gateway])).toEqual(all.slice(1));
  expect(forgotten([gateway, pods])).toEqual([]);
  // Another gateway: what runs goes on.
  expect(forgotten([gateway, { ...pods, via: '10.80.0.3' }])).toEqual([]);
});

test('a process that begins forgets pings only, in case an earlier one ended before it did so', () => {
  expect(forgotten([gateway, pods], true)).toEqual([['-D', '-d', '10.80.0.2/32']]);
});

test('a node with many peers keeps the flows that its pods have open to others', () => {
  const routes = Array.from({ length: 100 }, (_, n): Route => ({ ...gateway, destination: `10.80.0.${n}/32` }));
  expect(flowsOfOtherWays({ claimsFlows: true, routes }, { routes }, true)).toEqual(
    routes.map(({ destination }) => ['-D', '-d', destination]),
  );
});

test('a namespace that has no other way out forgets nothing', () => {
  expect(flowsOfOtherWays({ routes: state.routes }, { routes: [] }, true)).toEqual([]);
});
