import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { capturedIo, isthmus } from './captured-io.ts';
import { capturedHelp } from './help-text.ts';
import { createProgram } from './program.ts';
import { cliReference } from './reference.ts';

const program = await createProgram(capturedIo({}));
const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];

test('docs/cli.md is what --help says', async () => {
  await expect(cliReference(program)).toMatchFileSnapshot('../docs/cli.md');
});

describe('the help', () => {
  test('describes every command, argument and option', () => {
    const silent = all(program).flatMap((command) => [
      ...(command.description() === '' ? [command.name()] : []),
      ...command.registeredArguments
        .filter(({ description }) => !description)
        .map((a) => `${command.name()} ${a.name()}`),
      ...command.options.filter(({ description }) => !description).map((o) => `${command.name()} ${o.flags}`),
    ]);
    expect(silent).toEqual([]);
  });

  test('of the program lists every command', () => {
    const help = capturedHelp(program);
    for (const { _name } of program.commands as unknown as { _name: string }[]) expect(help).toContain(`\n  ${_name}`);
  });

  test('goes to standard output and ends well when it was asked for', async () => {
    const { code, out, err } = await isthmus(['peer', '--help']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('Usage: isthmus peer [options] <consumer> <provider>');
  });

  test('is shown with exit code 2 when a group is called without a command', async () => {
    const { code, err } = await isthmus(['get']);
    expect([code, err]).toEqual([2, expect.stringContaining('clusters')]);
  });
});

describe('the completion', () => {
  test.each(['bash', 'zsh'])('of %s knows every command', async (shell) => {
    const { out } = await isthmus(['completion', shell]);
    for (const command of program.commands) expect(out).toContain(command.name());
  });

  test('of another shell is refused with those that there are', async () => {
    expect(await isthmus(['completion', 'tcsh'])).toMatchObject({ code: 2, err: expect.stringContaining('bash, zsh') });
  });
});
