/** A page of examples/ whose commands are run as they stand: its fenced `sh` blocks, heading by heading, in the folder of the page. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { run } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

interface Block {
  readonly heading: string;
  readonly script: string;
  /** Marked `sh fails`: the page says so. */
  readonly fails: boolean;
}

export interface Tutorial {
  readonly headings: readonly string[];
  /** What the blocks under a heading printed. Rejects when one does not end as the page says. */
  follow(heading: string): Promise<string>;
}

function* blocksOf(text: string): Generator<Block> {
  let heading = '';
  for (const [, title, how = '', script = ''] of text.matchAll(/^## (.+)$|^```sh(.*)\n([\s\S]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    else yield { heading, script, fails: how.trim() === 'fails' };
  }
}

export function openTutorial(name: string, envFile: () => string): Tutorial {
  const cwd = path.join(repositoryRoot, 'examples', name);
  const blocks = [...blocksOf(readFileSync(path.join(cwd, 'README.md'), 'utf8'))];
  return {
    headings: [...new Set(blocks.map(({ heading }) => heading))],
    async follow(heading) {
      const printed: string[] = [];
      for (const { script, fails } of blocks.filter((block) => block.heading === heading)) {
        const whole = `set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n. '${envFile()}'\n${script}`;
        const ended = await run('bash', ['-c', whole], { cwd, timeoutMs: 300_000 });
        printed.push(ended.stdout, ended.stderr);
        if ((ended.code !== 0) !== fails)
          throw new Error(`exit ${ended.code} of ${name}, ${heading}:\n${script}\n${ended.stdout}${ended.stderr}`);
      }
      return printed.join('');
    },
  };
}
