/** The command lines that the console shows are lines that `isthmus` takes. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { capturedIo } from '#cli/captured-io.ts';
import { createProgram } from '#cli/program.ts';

const shown = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.tsx'))
  .flatMap((file) => {
    const text = readFileSync(path.join(import.meta.dirname, file), 'utf8');
    return [...text.matchAll(/\bline=(?:"(isthmus [^"]*)"|\{`(isthmus [^`]*)`\})/g)].map(
      ([, plain, filledIn]) => plain ?? filledIn ?? '',
    );
  })
  .map((line) => line.replaceAll(/\$\{hash\}/g, ' --ca-hash HASH').replaceAll(/\$\{[^}]*\}/g, 'word'));

test('many are shown', () => {
  expect(shown.length).toBeGreaterThan(15);
});

test.each(shown)('%s', async (line) => {
  let command: Command = await createProgram(capturedIo({}));
  const [, ...words] = line.split(/\s+/);
  const flags = words.filter((word) => word.startsWith('--') && word !== '--help');
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) break;
    command = next;
  }
  expect(command.parent, 'a command of its own').not.toBeNull();
  expect(command.commands, 'a command that does something').toEqual([]);
  for (const flag of flags) expect(command.options.map(({ long }) => long)).toContain(flag);
});
