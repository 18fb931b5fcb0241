/** The shells themselves, which `npm test` installs. */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { isthmus } from './captured-io.ts';

const scriptFor = async (shell: string): Promise<string> => (await isthmus(['completion', shell])).out;
const scripts = { bash: await scriptFor('bash'), zsh: await scriptFor('zsh'), fish: await scriptFor('fish') };
type Shell = keyof typeof scripts;

const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ');

/** Asks the shell itself; each prints one word a line. */
const programs: Readonly<Record<Shell, (line: readonly string[]) => readonly string[]>> = {
  bash: (line) => [
    '-c',
    `${scripts.bash}
COMP_WORDS=(${quoted(line)}); COMP_CWORD=${line.length - 1}; _isthmus; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ],
  // What zsh offers, it filters by the word before the cursor.
  zsh: (line) => [
    '-fc',
    `compdef() { : }; compadd() { shift; for word in "$@"; do [[ $word == '${line.at(-1)}'* ]] && print -r -- "$word"; done; true }
${scripts.zsh}
words=(${quoted(line)}); CURRENT=${line.length}; _isthmus`,
  ],
  fish: (line) => ['--no-config', '-c', `${scripts.fish}\ncomplete --do-complete "${line.join(' ')}"`],
};

/** What the shell would offer for the last of these words. */
function offered(shell: Shell, words: readonly string[]): string[] {
  const { stdout, stderr, error } = spawnSync(shell, programs[shell](['isthmus', ...words]), { encoding: 'utf8' });
  expect(error).toBeUndefined();
  expect(stderr).toBe('');
  return stdout.split('\n').filter((word) => word !== '');
}

const cases = [
  { words: ['pe'], to: ['peer'] },
  { words: ['get', ''], to: ['clusters', 'peerings', 'events', 'audit', '--help'] },
  { words: ['get', 'clusters', '-o', ''], to: ['table', 'json', 'yaml', 'name'] },
  { words: ['offload', 'namespace', 'demo', '--strategy', 'L'], to: ['Local', 'LocalAndRemote'] },
  { words: ['peer', 'rome', 'milan', '--cl'], to: ['--class'] },
  { words: ['completion', ''], to: ['bash', 'zsh', 'fish', 'powershell', '--help'] },
];

describe.each(['bash', 'zsh', 'fish'] as const)('%s completes', (shell) => {
  test.for(cases)('$words', ({ words, to }) => {
    expect(offered(shell, words).sort()).toEqual([...to].sort());
  });
});
