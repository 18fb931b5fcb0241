/** The program around its commands: which of them it loads, how it finds them, its help and its version. */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { type Command, Help } from 'commander';
import { expect, test, vi } from 'vitest';
import { capturedIo, isthmus } from './captured-io.ts';
import { commands } from './commands.ts';
import { createProgram } from './program.ts';

test('each command that is loaded alone is the one of the whole tree', async () => {
  const io = capturedIo({});
  const whole = (await createProgram(io)).commands;
  expect(whole.length).toBeGreaterThan(35);
  for (const command of whole) {
    const alone = (await createProgram(io, [command.name()])).commands.find((one) => one.name() === command.name());
    expect(alone?.helpInformation()).toBe(command.helpInformation());
  }
});

test('the help of the program says of each command what the command itself takes, without loading any', async () => {
  const io = capturedIo({});
  const whole = await createProgram(io);
  const terms = (of: Command): readonly string[] => of.commands.map((one) => new Help().subcommandTerm(one));
  const listed = await createProgram(io, []);
  expect(terms(listed)).toEqual(
    whole.commands.map((command) => command.name() + (command.alias() ? `|${command.alias()}` : '')),
  );
  expect(listed.helpInformation()).toBe(whole.helpInformation());
  for (const term of terms(whole)) expect(listed.helpInformation()).toContain(`\n  ${term}`);
});

test.each([['--version'], ['--help'], ['help'], ['mispeer'], []])(
  '`isthmus %s` loads no command: that would take twice the time of a start',
  async (...args) => {
    const loads = Object.values(commands).map((one) => vi.spyOn(one, 'load'));
    try {
      await isthmus(args);
      expect(loads.filter(({ mock }) => mock.calls.length > 0)).toEqual([]);
      await isthmus(['peer', '--help']);
      expect(loads.filter(({ mock }) => mock.calls.length > 0)).toHaveLength(1);
    } finally {
      for (const load of loads) load.mockRestore();
    }
  },
);

test.each([['--help'], ['help'], []])('`isthmus %s` prints the help of the program', async (...args) => {
  const asked = await isthmus(args);
  expect(asked.code).toBe(args.length === 0 ? 2 : 0);
  expect(asked.out + asked.err).toContain('\n  peer [options] <consumer> <provider> ');
});

test('an alias, options before the name, and `help NAME` find their command', async () => {
  for (const args of [
    ['request', '--help'],
    ['help', 'requests'],
    ['--verbose', 'requests', '--help'],
  ])
    expect(await isthmus(args)).toMatchObject({ code: 0, out: expect.stringContaining('approve [options]') });
});

test('a misspelt command is refused with the name that is like it', async () => {
  expect(await isthmus(['stauts'])).toMatchObject({ code: 2, err: expect.stringContaining('Did you mean status?') });
});

test('the version is told alone', async () => {
  const plain = await isthmus(['--version']);
  expect(plain).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), err: '' });
  expect(await isthmus(['-V', '--verbose'])).toEqual(plain);
});

test('the program itself starts, prints its version and knows its commands', async () => {
  const child = spawn(process.execPath, [
    path.resolve(import.meta.dirname, '../bin/isthmus.mjs'),
    'version',
    '--client',
  ]);
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect([code, Buffer.concat(chunks).toString()]).toEqual([0, expect.stringMatching(/^isthmus \d+\.\d+\.\d+\n$/)]);
});
