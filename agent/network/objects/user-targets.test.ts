/** Which firewall rules and routes of users are for a node, and which for a gateway, by their labels. */
import { describe, expect, test } from 'vitest';
import { firewallsFor, routesFor, type Target } from './user-targets.ts';

const networking = { apiVersion: 'networking.liqo.io/v1beta1' };

describe('configurations that people wrote', () => {
  const n1: Target = { is: 'node', node: 'n1' };
  const milan: Target = { is: 'gateway', node: 'n1', remoteClusterId: 'milan' };
  test.each([
    { labels: { category: 'fabric', subcategory: 'all-nodes' }, node: true, gateway: false },
    { labels: { category: 'fabric', subcategory: 'single-node', unique: 'n1' }, node: true, gateway: false },
    { labels: { category: 'fabric', subcategory: 'single-node', unique: 'n2' }, node: false, gateway: false },
    { labels: { category: 'fabric', subcategory: 'ip-mapping' }, node: true, gateway: false },
    { labels: { category: 'fabric' }, node: false, gateway: false },
    { labels: { category: 'gateway', subcategory: 'all-gateways' }, node: false, gateway: true },
    { labels: { category: 'gateway', subcategory: 'fabric' }, node: false, gateway: true },
    { labels: { category: 'gateway', subcategory: 'ip-mapping' }, node: false, gateway: true },
    { labels: { category: 'gateway', unique: 'milan' }, node: false, gateway: true },
    { labels: { category: 'gateway', unique: 'turin' }, node: false, gateway: false },
    { labels: {}, node: false, gateway: false },
  ])('rules labelled $labels: node $node, gateway $gateway', ({ labels, ...expected }) => {
    const all = [
      {
        ...networking,
        kind: 'FirewallConfiguration',
        metadata: { name: 'mine', namespace: 'liqo', labels: prefixed('firewall', labels) },
        spec: { table: { name: 'mine', family: 'IPV4' as const, chains: [] } },
      },
    ];
    expect({ node: firewallsFor(n1, all).length > 0, gateway: firewallsFor(milan, all).length > 0 }).toEqual(expected);
  });

  test.each([
    { labels: { category: 'fabric' }, node: true, gateway: false },
    { labels: { category: 'gateway', subcategory: 'fabric' }, node: false, gateway: true },
    { labels: { category: 'gateway', subcategory: 'fabric-node', unique: 'n1' }, node: false, gateway: true },
    { labels: { category: 'gateway', subcategory: 'fabric-node', unique: 'n2' }, node: false, gateway: false },
    { labels: { category: 'gateway', unique: 'milan' }, node: false, gateway: true },
    { labels: { category: 'gateway' }, node: false, gateway: false },
  ])('routes labelled $labels: node $node, gateway $gateway', ({ labels, ...expected }) => {
    const all = [
      {
        ...networking,
        kind: 'RouteConfiguration',
        metadata: { name: 'mine', namespace: 'liqo', labels: prefixed('route', labels) },
        spec: { table: { name: 'mine', rules: [] } },
      },
    ];
    expect({ node: routesFor(n1, all).length > 0, gateway: routesFor(milan, all).length > 0 }).toEqual(expected);
  });

  const prefixed = (kind: string, labels: object): Record<string, string> =>
    Object.fromEntries(Object.entries(labels).map(([key, value]) => [`networking.liqo.io/${kind}-${key}`, value]));
});
