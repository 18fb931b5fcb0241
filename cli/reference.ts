/** The page docs/cli.md, from the help texts themselves. */
import type { Command } from 'commander';
import { capturedHelp } from './help-text.ts';

const heading = (path: readonly string[]): string =>
  `${'#'.repeat(Math.min(path.length + 1, 4))} isthmus ${path.join(' ')}`;

function sections(command: Command, path: readonly string[]): string[] {
  const own = path.length === 0 ? '' : `${heading(path)}\n\n\`\`\`text\n${capturedHelp(command).trim()}\n\`\`\`\n`;
  return [own, ...command.commands.flatMap((child) => sections(child, [...path, child.name()]))];
}

/** `program` is the whole tree. */
export function cliReference(program: Command): string {
  return [
    '# The command line',
    '',
    'Generated from `isthmus --help` and checked by a test; change the help text, not this page.',
    '',
    '```text',
    capturedHelp(program).trim(),
    '```',
    '',
    ...sections(program, []).filter((text) => text !== ''),
  ].join('\n');
}
