import fc from 'fast-check';
import { expect, test } from 'vitest';
import { macOf } from './mac.ts';

test('a name has one address, of one machine, that no manufacturer gives', () => {
  fc.assert(
    fc.property(fc.string(), (name) => {
      const mac = macOf(name);
      expect(mac).toMatch(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/);
      expect(Number.parseInt(mac.slice(0, 2), 16) & 0b11).toBe(0b10);
      expect(macOf(name)).toBe(mac);
    }),
  );
  const many = Array.from({ length: 1_000 }, (_, i) => macOf(`node${i} eth0`));
  expect(new Set(many).size).toBe(1_000);
});
