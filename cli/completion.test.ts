import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { isthmus } from './captured-io.ts';

const { out: script } = await isthmus(['completion', 'bash']);

/** What bash would offer for the last of these words. */
function offered(...words: string[]): string[] {
  const line = ['isthmus', ...words];
  const code = `${script}
COMP_WORDS=(${line.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${line.length - 1}; _isthmus; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', code], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((word) => word !== '');
}

describe('bash completes', () => {
  test.each([
    { words: ['pe'], to: ['peer'] },
    { words: ['get', ''], to: ['clusters', 'peerings', 'events', 'audit', '--help'] },
    { words: ['get', 'clusters', '-o', ''], to: ['table', 'json', 'yaml', 'name'] },
    { words: ['offload', 'namespace', 'demo', '--strategy', 'L'], to: ['Local', 'LocalAndRemote'] },
    { words: ['peer', 'rome', 'milan', '--cl'], to: ['--class'] },
    { words: ['completion', ''], to: ['bash', 'zsh', '--help'] },
  ])('$words', ({ words, to }) => {
    expect(offered(...words)).toEqual(to);
  });
});

test('the zsh script is valid where zsh is installed', async ({ skip }) => {
  const { out } = await isthmus(['completion', 'zsh']);
  const { error, status } = spawnSync('zsh', ['-n'], { input: out, encoding: 'utf8' });
  if (error && process.env.CI === undefined) skip('no zsh on this machine; `npm test` installs it');
  expect(error).toBeUndefined();
  expect(status).toBe(0);
});
