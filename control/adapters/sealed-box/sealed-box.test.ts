import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSealedBox } from './sealed-box.ts';

const box = createSealedBox(randomBytes(32));

describe('a sealed secret', () => {
  test('opens for its context, and reads nothing like the secret', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.string(), async (secret, context) => {
        expect(await box.open(await box.seal(secret, context), context)).toBe(secret);
      }),
    );
    expect(await box.seal('whsec_abcdefgh', 'a')).not.toContain('abcdefgh');
  });

  test('is never the same twice', async () => {
    expect(await box.seal('same', 'a')).not.toBe(await box.seal('same', 'a'));
  });

  test('opens for no other context', async () => {
    await expect(box.open(await box.seal('secret', 'webhook/acme/1'), 'webhook/bolt/1')).rejects.toThrow();
  });

  test('opens with no other key', async () => {
    const other = createSealedBox(randomBytes(32));
    await expect(other.open(await box.seal('secret', 'a'), 'a')).rejects.toThrow();
  });

  test('does not open when any of it was changed', async () => {
    const sealed = await box.seal('secret', 'a');
    for (let i = 3; i < sealed.length - 1; i += 1) {
      const changed = `${sealed.slice(0, i)}${sealed[i] === 'A' ? 'B' : 'A'}${sealed.slice(i + 1)}`;
      await expect(box.open(changed, 'a')).rejects.toThrow();
    }
  });

  test.each(['', 'v1', 'v1.', 'v1.AAAA', 'v2.AAAA', 'nonsense'])('%j is none', async (text) => {
    await expect(box.open(text, 'a')).rejects.toThrow('no sealed secret');
  });
});
