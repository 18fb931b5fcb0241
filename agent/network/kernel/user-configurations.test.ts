/** FirewallConfigurations and RouteConfigurations of users as nft tables, rules and routes of a node, and what is refused of them. */
import { describe, expect, test } from 'vitest';
import type { NatRule } from '#shared/schema/liqo/firewall-configuration.ts';
import type { UserFirewall } from './user-configurations.ts';
import { userTables } from './user-firewall.ts';
import { tableNumber, userRouting } from './user-routes.ts';

describe("users' configurations", () => {
  const match = { op: 'eq' as const };

  test('render every action and match of FirewallConfiguration', async () => {
    const { tables, refused } = userTables([
      {
        name: 'ns/all',
        table: {
          name: 'all-of-it',
          family: 'IPV4',
          chains: [
            {
              name: 'forward',
              type: 'filter',
              policy: 'drop',
              hook: 'forward',
              priority: -1,
              rules: {
                filterRules: [
                  {
                    name: 'a',
                    match: [{ ...match, ip: { value: '10.0.0.0/8', position: 'src' } }],
                    action: 'accept',
                    counter: true,
                  },
                  {
                    name: 'b',
                    match: [{ op: 'neq', ip: { value: '10.0.0.1-10.0.0.9', position: 'dst' } }],
                    action: 'drop',
                    counter: false,
                  },
                  {
                    name: 'c',
                    match: [{ ...match, proto: { value: 'tcp' }, port: { value: '80-90', position: 'dst' } }],
                    action: 'reject',
                    counter: true,
                  },
                  {
                    name: 'd',
                    match: [{ ...match, port: { value: '53', position: 'src' } }],
                    action: 'ctmark',
                    value: '7',
                    counter: true,
                  },
                  {
                    name: 'e',
                    match: [{ ...match, dev: { value: 'eth0', position: 'in' } }],
                    action: 'metamarkfromctmark',
                    counter: true,
                  },
                  {
                    name: 'f',
                    match: [
                      { ...match, proto: { value: 'tcp' } },
                      { op: 'neq', dev: { value: 'eth0', position: 'out' } },
                    ],
                    action: 'tcpmssclamp',
                    value: '0',
                    counter: true,
                  },
                  {
                    name: 'g "quoted"',
                    match: [{ ...match, proto: { value: 'tcp' } }],
                    action: 'tcpmssclamp',
                    value: '1200',
                    counter: true,
                  },
                  { match: [], action: 'notrack', counter: true },
                ],
              },
            },
            {
              name: 'postrouting',
              type: 'nat',
              policy: 'accept',
              hook: 'postrouting',
              priority: 100,
              rules: {
                natRules: [
                  { name: 'one', match: [], natType: 'snat', to: '10.1.1.1' },
                  {
                    name: 'prefix',
                    match: [{ ...match, ip: { value: '10.1.0.0/16', position: 'src' } }],
                    natType: 'snat',
                    to: '10.2.0.0/16',
                  },
                  { name: 'any', match: [], natType: 'masquerade' },
                ],
              },
            },
          ],
        },
      },
    ]);
    expect(refused).toEqual([]);
    await expect(tables[0]?.body).toMatchFileSnapshot('golden/user-firewall.nft');
  });

  const firewall = (table: Partial<UserFirewall['table']>): UserFirewall => ({
    name: 'ns/bad',
    table: { name: 'good', family: 'IPV4', chains: [], ...table },
  });
  const nat = (rule: Partial<NatRule>, hook: 'postrouting' | 'ingress' = 'postrouting') =>
    firewall({
      chains: [
        {
          name: 'c',
          type: 'nat',
          policy: 'accept',
          hook,
          priority: 0,
          rules: { natRules: [{ name: 'r', natType: 'snat', to: '10.0.0.1', match: [], ...rule }] },
        },
      ],
    });
  const device = (value: string) => [{ ...match, dev: { value, position: 'in' as const } }];

  test.each([
    ['a table of ours', firewall({ name: 'isthmus' }), 'table.name is isthmus, which belongs to Isthmus'],
    ['a name that is more', firewall({ name: 'x { } table ip y' }), 'table.name is "x { } table ip y", accepted is'],
    ['a hook that needs a device', nat({}, 'ingress'), 'hook is ingress'],
    ['an address that is none', nat({ to: '10.0.0.1; drop' }), 'rule r: to is "10.0.0.1; drop", accepted is'],
    ['an interface that is none', nat({ match: device('eth0" drop') }), 'dev.value is "eth0\\" drop", accepted is'],
    ['a masquerade to somewhere', nat({ natType: 'masquerade' }), 'masquerade takes no "to"'],
  ])('are refused with %s', (_, bad, message) => {
    const { tables, refused } = userTables([bad]);
    expect(tables).toEqual([]);
    expect(refused).toEqual([{ configuration: 'ns/bad', message: expect.stringContaining(message) }]);
  });

  test('number their routing tables as Liqo does', () => {
    // by hand from the digests of sha256sum: bytes a, b, c, d give a + ((b | 1) << 8) + (c << 16) + ((d >> 1) << 24)
    expect(tableNumber('a')).toBe(0xca + ((0x97 | 1) << 8) + (0x81 << 16) + ((0x12 >> 1) << 24));
    expect(tableNumber('example')).toBeGreaterThan(255);
  });

  test('become rules and routes of that table, host bits cleared', () => {
    const { rules, routes } = userRouting([
      {
        name: 'ns/r',
        table: {
          name: 'a',
          rules: [
            {
              dst: '10.9.9.9/16',
              iif: 'eth0',
              fwmark: 5,
              priority: 200,
              routes: [{ dst: '10.9.0.0/16', gw: '10.0.0.1', onlink: true, dev: 'eth0' }],
            },
            { src: '10.8.0.0/16', routes: [{ dst: '0.0.0.0/0', dev: 'eth0', scope: 'link', src: '10.0.0.9' }] },
          ],
        },
      },
    ]);
    const table = tableNumber('a');
    expect(rules).toEqual([
      { table, priority: 200, to: '10.9.0.0/16', iif: 'eth0', fwmark: 5, configuration: 'ns/r' },
      { table, from: '10.8.0.0/16', configuration: 'ns/r' },
    ]);
    expect(routes).toEqual([
      { table, destination: '10.9.0.0/16', via: '10.0.0.1', device: 'eth0', onlink: true, configuration: 'ns/r' },
      { table, destination: 'default', device: 'eth0', scope: 'link', source: '10.0.0.9', configuration: 'ns/r' },
    ]);
  });
});
