import { expect, test } from 'vitest';
import { nodeNetworksIn } from './node-networks.ts';

const route = (dst: string, dev: string, more: object = {}) => ({ dst, dev, flags: [], ...more });
const link = { protocol: 'kernel', scope: 'link' };

test('a node reports its networks, its gateways and its resolvers, and nothing of ours or of single pods', () => {
  const routes = [
    route('default', 'eth0', { gateway: '192.168.7.1' }),
    route('default', 'eth1', { nexthops: [{ gateway: '172.31.1.1' }, { gateway: '172.31.1.2' }] }),
    route('192.168.7.0/24', 'eth0', link),
    route('10.244.1.0/24', 'cni0', link),
    route('10.244.2.0/24', 'flannel.1', { gateway: '10.244.2.0' }),
    route('10.244.9.9', 'cali1234', { scope: 'link' }),
    route('10.80.0.0/16', 'liqo-overlay', link),
  ];
  const resolvers = ['# by DHCP\nnameserver 10.0.0.2\nnameserver fd00::1\nsearch local\n', 'nameserver 127.0.0.53'];
  expect(nodeNetworksIn(JSON.stringify(routes), resolvers)).toEqual([
    '10.244.1.0/24',
    '192.168.7.0/24',
    '10.0.0.2/32',
    '10.244.2.0/32',
    '172.31.1.1/32',
    '172.31.1.2/32',
    '192.168.7.1/32',
  ]);
});

test('a node without routes has no networks', () => {
  expect(nodeNetworksIn('', [])).toEqual([]);
});
