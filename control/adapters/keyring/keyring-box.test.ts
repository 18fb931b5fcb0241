import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { createKeyringBox } from './keyring-box.ts';

const k1 = 'A'.repeat(64);
const k2 = 'B'.repeat(64);

function boxOver(first: string) {
  const clock = new ManualClock();
  const kept = { text: first, reads: 0 };
  const box = createKeyringBox({
    clock,
    read: async () => {
      kept.reads += 1;
      return kept.text;
    },
  });
  return { box, kept, clock };
}

describe('a keyring', () => {
  test('is read once, at the first use', async () => {
    const { box, kept } = boxOver(JSON.stringify({ k1 }));
    expect(kept.reads).toBe(0);
    const sealed = await box.seal('whsec_x', 'webhook/a');
    expect(await box.open(sealed, 'webhook/a')).toBe('whsec_x');
    expect(kept.reads).toBe(1);
  });

  test('seals with the newest key, and opens what older ones sealed', async () => {
    const old = await boxOver(JSON.stringify({ k1 })).box.seal('one', 'c');
    const { box } = boxOver(JSON.stringify({ k9: k1, k10: k2, k1 }));
    expect(await box.open(old, 'c')).toBe('one');
    expect(await box.seal('two', 'c')).toMatch(/^k10\./);
  });

  test('is read again for a key that was added since, but not at every turn', async () => {
    const sealed = await boxOver(JSON.stringify({ k1, k2 })).box.seal('new', 'c');
    const { box, kept, clock } = boxOver(JSON.stringify({ k1 }));
    await box.seal('warm', 'c');
    await expect(box.open(sealed, 'c')).rejects.toThrow('not on the keyring');
    expect(kept.reads).toBe(1);
    kept.text = JSON.stringify({ k2, k1 });
    clock.advance(10_000);
    expect(await box.open(sealed, 'c')).toBe('new');
    expect(kept.reads).toBe(2);
  });

  test('opens nothing for another context, with another key or when changed', async () => {
    const { box } = boxOver(JSON.stringify({ k1, k2 }));
    const sealed = await box.seal('s', 'webhook/a');
    await expect(box.open(sealed, 'webhook/b')).rejects.toThrow();
    await expect(box.open(sealed.replace(/^k2/, 'k1'), 'webhook/a')).rejects.toThrow();
    await expect(box.open(sealed.slice(0, -2), 'webhook/a')).rejects.toThrow();
    await expect(box.open('nonsense', 'webhook/a')).rejects.toThrow('not on the keyring');
  });

  test('is tried again after it could not be read', async () => {
    let fails = true;
    const read = async () => {
      if (fails) throw new Error('throttled');
      return JSON.stringify({ k1 });
    };
    const box = createKeyringBox({ clock: new ManualClock(), read });
    await expect(box.seal('s', 'c')).rejects.toThrow('throttled');
    fails = false;
    expect(await box.seal('s', 'c')).toMatch(/^k1\./);
  });

  test.each([
    { what: 'no JSON', text: 'secret-text-of-a-user' },
    { what: 'empty', text: '{}' },
    { what: 'of a key too short to be one', text: '{"k1":"secret-text-of-a-user"}' },
    { what: 'of keys without numbers', text: JSON.stringify({ main: k1 }) },
  ])('that is $what is refused without being shown', async ({ text }) => {
    const refusal = await boxOver(text)
      .box.seal('s', 'c')
      .catch((error: unknown) => String(error));
    expect(refusal).toContain('the keyring is not');
    expect(refusal).not.toContain('secret-text');
  });
});
