import { expect, test } from 'vitest';
import { isthmus } from './captured-io.ts';

test('the script for PowerShell names every command, its brackets closed', async () => {
  const text = (await isthmus(['completion', 'powershell'])).out;
  for (const path of ['peer', 'get clusters', 'offload namespace', 'completion']) expect(text).toContain(`'${path}'`);
  for (const [open, close] of ['()', '{}', '[]'].map((pair) => [...pair] as [string, string]))
    expect(text.split(open).length).toBe(text.split(close).length);
});
