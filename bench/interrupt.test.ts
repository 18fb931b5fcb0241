/** An interrupted bench ends what it has started. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { transformSync } from 'esbuild';
import { expect, test } from 'vitest';

const source = readFileSync(new URL('./interrupt.ts', import.meta.url), 'utf8');
const program = `${transformSync(source, { loader: 'ts' }).code}
  const say = (line) => process.stdout.write(line + '\\n');
  const running = endOnInterrupt(async () => say('clusters'), say);
  running.alsoEnd(async () => say('nodes'));
  setInterval(() => undefined, 1_000);
  say('up');
`;

test.each([
  { signal: 'SIGINT', code: 130 },
  { signal: 'SIGTERM', code: 143 },
] as const)('$signal ends what was started last first, and the process exits with $code', async ({ signal, code }) => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program]);
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
    if (out === 'up\n') {
      child.kill(signal);
      child.kill(signal);
    }
  });
  const [exit] = await once(child, 'close');
  expect(exit).toBe(code);
  expect(out.split('\n').filter((line) => line !== '')).toEqual([
    'up',
    `${signal}: removing what this bench has started`,
    'nodes',
    'clusters',
  ]);
});
