import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limitKey, unmapped } from './socket-address.ts';

test.each([
  ['::ffff:10.0.0.7', '10.0.0.7'],
  ['::FFFF:127.0.0.1', '127.0.0.1'],
  ['10.0.0.7', '10.0.0.7'],
  ['fd00::7', 'fd00::7'],
  ['::ffff:0:1', '::ffff:0:1'],
  ['', ''],
])('the socket address %j is written %j', (shown, written) => {
  expect(unmapped(shown)).toBe(written);
});

test.each([
  ['10.0.0.7', '10.0.0.7'],
  ['::ffff:10.0.0.7', '10.0.0.7'],
  ['::FFFF:a00:7', '10.0.0.7'],
  ['0:0:0:0:0:ffff:10.0.0.7', '10.0.0.7'],
  ['2001:db8:0:1::7', '2001:db8:0:1::/64'],
  ['2001:0DB8:0000:0001:9:8:7:6', '2001:db8:0:1::/64'],
  ['2001:db8::7', '2001:db8:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ...[
    '',
    'unknown',
    '1:2',
    '1::2::3',
    '::ffff:10.0.0.256',
    '1:2:3:4:5:6:7:8:9',
    'g::1',
    '12345::',
    '::1]:80',
    '::1/64',
    ':',
    '::1@x',
  ].map((text) => [text, text]),
])('limits count %j as %j', (address, key) => {
  expect(limitKey(address)).toBe(key);
});

test('limits count all addresses of one /64 as one, those of two as two, and a mapped IPv4 address as itself', () => {
  const group = fc.integer({ min: 0, max: 0xff_ff }).map((n) => n.toString(16));
  const four = fc.array(group, { minLength: 4, maxLength: 4 }).map((all) => all.join(':'));
  const network = fc.tuple(group, group, group).map((all) => ['2001', ...all].join(':'));
  fc.assert(
    fc.property(network, four, four, (one, a, b) => {
      expect(limitKey(`${one}:${a}`)).toBe(`${one}::/64`);
      expect(limitKey(`${one}:${b}`.toUpperCase())).toBe(`${one}::/64`);
    }),
  );
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(limitKey(`::ffff:${address}`)).toBe(address);
      expect(limitKey(address)).toBe(address);
    }),
  );
  fc.assert(
    fc.property(fc.ipV6(), (address) => void expect(limitKey(address)).toMatch(/^([0-9a-f]{1,4}:){4}:\/64$|^[\d.]+$/)),
  );
});
