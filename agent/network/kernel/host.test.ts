/** What the kernel of a node prints, and the texts by which it is changed: addresses, routes, nft tables and WireGuard. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { gatewayModel } from '#agent/testing/network-models.ts';
import { contains, covering, formatAddress, parseAddress } from '#shared/domain/cidr.ts';
import { planGateway } from '../plan/gateway-plan.ts';
import { diff } from './diff.ts';
import type { NftTable } from './kernel-state.ts';
import { elementChanges, parseTable } from './nft-diff.ts';
import { parseObserved } from './observed.ts';
import { parseDump, parseUapi, uapiRequest } from './wireguard.ts';

describe('ranges', () => {
  const cidrs = fc
    .tuple(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.integer({ min: 4, max: 32 }))
    .map(([address, length]) => `${formatAddress(address)}/${length}`);

  test('keep their address through number and text', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (n) => {
        expect(parseAddress(formatAddress(n))).toBe(n);
      }),
    );
  });

  test('that cover a list contain each of it and overlap nowhere', () => {
    fc.assert(
      fc.property(fc.array(cidrs, { maxLength: 12 }), (list) => {
        const kept = covering(list);
        for (const cidr of list) expect(kept.some((outer) => contains(outer, cidr))).toBe(true);
        for (const a of kept) for (const b of kept) expect(a === b || !contains(a, b)).toBe(true);
      }),
    );
  });
});

describe('what iproute2 prints', () => {
  // ip -4 -details -Numeric -oneline, iproute2 6.1
  const printed = String.raw`
2: liqo-overlay    inet 10.80.1.1/32 scope 0 liqo-overlay\       valid_lft forever preferred_lft forever
0:	from all lookup 255 proto 2
101:	from all iif liqo-overlay lookup 1814301 proto 143
103:	from all fwmark 0x69730001 iif lo lookup 1814301 proto 143
150:	from 10.1.0.0/16 to 10.2.3.4 iif nodev [detached] lookup 254 proto 143
7 default table 1814302 scope 0
1 10.71.0.0/16  encap ip id 4660 src 0.0.0.0 dst 10.200.1.2 ttl 0 tos 0 via 10.80.0.9 dev liqo-overlay table 1814300 scope 0 src 10.80.0.1 onlink mtu 1300
1 10.80.0.9  encap ip id 4660 src 0.0.0.0 dst 10.200.1.2 ttl 0 tos 0 dev liqo-overlay table 1814300 scope 253
1 10.3.0.0/16 dev lo table 254 scope 253 metric 7
10.80.0.9 lladdr 02:69:0a:50:00:09 PERMANENT proto 143
2: liqo-overlay: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1340 qdisc noqueue state UNKNOWN mode DEFAULT group 0 qlen 1000\    link/[1] 02:69:0a:50:01:01 brd ff:ff:ff:ff:ff:ff promiscuity 0  allmulti 0 minmtu 68 maxmtu 65535 \    vxlan external id 0 srcport 0 0 dstport 6091 nolearning ttl auto ageing 300 udpcsum
`;

  test('is read back as what was asked for', () => {
    const { devices, ...rest } = parseObserved(printed);
    expect(Object.fromEntries(devices)).toEqual({
      'liqo-overlay': {
        kind: 'vxlan',
        up: true,
        mtu: 1340,
        mac: '02:69:0a:50:01:01',
        port: 6091,
        addresses: ['10.80.1.1/32'],
      },
    });
    expect(rest).toEqual({
      rules: [
        { priority: 101, table: 1814301, iif: 'liqo-overlay' },
        { priority: 103, table: 1814301, iif: 'lo', fwmark: 0x69730001 },
        { priority: 150, table: 254, from: '10.1.0.0/16', to: '10.2.3.4/32', iif: 'nodev' },
      ],
      routes: [
        { table: 1814302, destination: 'default', type: 'unreachable', scope: 'global' },
        {
          table: 1814300,
          destination: '10.71.0.0/16',
          device: 'liqo-overlay',
          via: '10.80.0.9',
          onlink: true,
          encap: { vni: 4660, destination: '10.200.1.2' },
          source: '10.80.0.1',
          scope: 'global',
          mtu: 1300,
        },
        {
          table: 1814300,
          destination: '10.80.0.9/32',
          device: 'liqo-overlay',
          encap: { vni: 4660, destination: '10.200.1.2' },
          scope: 'link',
        },
        { table: 'main', destination: '10.3.0.0/16', device: 'lo', scope: 'link', metric: 7 },
      ],
      neighbours: [{ device: 'liqo-overlay', address: '10.80.0.9', mac: '02:69:0a:50:00:09' }],
      localFirst: true,
    });
  });

  test('of a gateway without its tunnel device leads to no command that needs it', () => {
    const lines = diff(planGateway(gatewayModel), {
      devices: new Map(),
      routes: [],
      rules: [],
      neighbours: [],
      localFirst: true,
    });
    expect(lines.filter(({ line }) => line.includes('dev liqo-tunnel'))).toEqual([]);
  });
});

describe('nft tables', () => {
  const table = (elements: Record<string, string>): NftTable => ({
    family: 'ip',
    name: 'isthmus',
    body: '',
    maps: { inward: elements },
  });
  const listed = JSON.stringify({
    nftables: [
      { metainfo: { version: '1.0.6' } },
      { table: { family: 'ip', name: 'isthmus', handle: 4 } },
      {
        map: {
          family: 'ip',
          name: 'inward',
          handle: 5,
          elem: [
            ['10.70.0.1', '10.80.0.1'],
            ['10.70.0.2', '10.80.0.2'],
          ],
        },
      },
      { rule: { chain: 'x', handle: 9, expr: [{ counter: { packets: 5, bytes: 7 } }, { drop: null }] } },
    ],
  });

  test('have the same structure for any counters and elements', () => {
    const other = listed.replaceAll(/"handle":\d+/g, '"handle":77').replace('"packets":5', '"packets":6');
    const empty = other.replace(/"elem":.*?\]\]\}/, '"elem":[]}');
    expect(parseTable(empty).structure).toBe(parseTable(listed).structure);
    expect(parseTable(listed.replace('"drop"', '"accept"')).structure).not.toBe(parseTable(listed).structure);
  });

  test('change by the elements that differ', () => {
    const found = parseTable(listed);
    expect(elementChanges(table({ '10.70.0.1': '10.80.0.1', '10.70.0.2': '10.80.0.2' }), found)).toBe('');
    expect(elementChanges(table({ '10.70.0.1': '10.80.0.9', '10.70.0.3': '10.80.0.3' }), found)).toBe(
      'delete element ip isthmus inward { 10.70.0.1, 10.70.0.2 }\n' +
        'add element ip isthmus inward { 10.70.0.1 : 10.80.0.9, 10.70.0.3 : 10.80.0.3 }\n',
    );
  });
});

describe('the text protocol of wireguard-go', () => {
  const key = Buffer.alloc(32, 0xab);

  test('writes keys in hexadecimal, and only what changes', () => {
    expect(uapiRequest({ removed: [key.toString('base64')] })).toBe(
      `set=1\npublic_key=${key.toString('hex')}\nremove=true\n\n`,
    );
    expect(
      uapiRequest({
        privateKey: key.toString('base64'),
        listenPort: 51820,
        peer: { publicKey: key.toString('base64'), endpoint: '192.0.2.1:1', keepaliveSeconds: 3 },
      }),
    ).toBe(
      `set=1\nprivate_key=${key.toString('hex')}\nlisten_port=51820\npublic_key=${key.toString('hex')}\nendpoint=192.0.2.1:1\n` +
        'persistent_keepalive_interval=3\nreplace_allowed_ips=true\nallowed_ip=0.0.0.0/0\n\n',
    );
  });

  test('and wireguard-tools say the same of one device', () => {
    const uapi = parseUapi(
      `private_key=${key.toString('hex')}\nlisten_port=51840\nfwmark=0\npublic_key=${key.toString('hex')}\nendpoint=192.0.2.1:7\n` +
        'last_handshake_time_sec=1700000000\nlast_handshake_time_nsec=0\ntx_bytes=5\nrx_bytes=6\npersistent_keepalive_interval=2\nallowed_ip=0.0.0.0/0\nerrno=0\n\n',
    );
    const text = key.toString('base64');
    const dump = `${text}\t${text}\t51840\toff\n${text}\t(none)\t192.0.2.1:7\t0.0.0.0/0\t1700000000\t6\t5\t2\n`;
    expect(parseDump(dump)).toEqual(uapi);
    expect(uapi.peers[0]).toMatchObject({ lastHandshakeMs: 1_700_000_000_000, receivedBytes: 6, sentBytes: 5 });
  });
});
