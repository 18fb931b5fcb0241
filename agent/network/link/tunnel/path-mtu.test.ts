import fc from 'fast-check';
import { expect, test } from 'vitest';
import { leastTunnelMtu, searchMtu } from './path-mtu.ts';

async function search(high: number, path: number): Promise<{ found: number | undefined; asked: number }> {
  let asked = 0;
  const found = await searchMtu(high, async (size) => {
    asked++;
    return size <= path;
  });
  return { found, asked };
}

test('a path that lets everything through costs one question', async () => {
  expect(await search(1340, 1500)).toEqual({ found: 1340, asked: 1 });
});

test('a path that lets nothing through gives no result, after two questions', async () => {
  expect(await search(1340, 0)).toEqual({ found: undefined, asked: 2 });
});

test('any path is found to the byte, in few questions', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1280, max: 9000 }),
      fc.integer({ min: leastTunnelMtu, max: 9000 }),
      async (high, path) => {
        const { found, asked } = await search(high, path);
        expect(found).toBe(Math.min(high, path));
        expect(asked).toBeLessThanOrEqual(16);
      },
    ),
  );
});
