/** The command tree, and what running it comes to: an exit code. */
import { Command, CommanderError, Help } from 'commander';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { codes } from '#shared/errors/codes.ts';
import { showRequests } from './cluster/verbose.ts';
import { settleKubeconfig } from './commands/kubeconfig-option.ts';
import { commands, type Listed } from './commands.ts';
import { explain } from './output/failure.ts';
import type { CliIo } from './output/io.ts';
import { version } from './output/version.ts';

/** As shells report a process that ended by SIGINT. */
const interrupted = 130;

const exitCodes = [...new Map(Object.values(codes).map(({ exit }) => [exit, exit])).values()].sort((a, b) => a - b);
const meaning: Readonly<Record<number, string>> = {
  1: 'a defect',
  2: 'wrong input',
  3: 'not allowed',
  4: 'not found',
  5: 'conflict with what exists',
  6: 'refused by a policy or limit',
  7: 'something did not answer; try again',
  8: 'waited too long',
  9: 'this machine lacks something',
};

/** Taken out of the arguments before the command sees them, wherever it stands. */
const verboseFlag = '--verbose';

/** The command itself where it is `loaded`, else what the program's help says of it. */
async function commandOf(name: string, { summary, alias, load }: Listed, loaded: boolean, io: CliIo): Promise<Command> {
  const command = (loaded ? (await load())(io) : new Command(name)).description(summary);
  return alias === undefined ? command : command.alias(alias);
}

/** The whole tree, with the help of the program; of commands that are not `loaded` there is nothing else. */
export async function createProgram(io: CliIo, loaded: readonly string[] = Object.keys(commands)): Promise<Command> {
  const listed = Object.entries(commands).map(([name, of]) => commandOf(name, of, loaded.includes(name), io));
  const program = new Command('isthmus')
    .description(
      'Kubernetes clusters lend each other capacity: a provider cluster appears in a consumer cluster as one more node.',
    )
    .version(version, '-V, --version', 'print the version of this program')
    .option(verboseFlag, 'with any command: show each request on stderr: method, address, status, time; no secrets')
    .helpCommand('help [command]', 'help about a command')
    .showHelpAfterError('(add --help for what is accepted)')
    .addHelpText(
      'after',
      `
From nothing to a pod that runs next door:
  isthmus broker serve --data ./broker                  start a broker; it prints the login line
  isthmus login URL --ca-hash HASH --key KEY
  isthmus join rome --kubeconfig rome.kubeconfig        once for each cluster
  isthmus join milan --kubeconfig milan.kubeconfig
  isthmus peer rome milan --cpu 2 --memory 4Gi --wait   milan becomes a node of rome
  isthmus offload namespace demo --kubeconfig rome.kubeconfig

Without --kubeconfig, commands take KUBECONFIG, then ~/.kube/config, as kubectl does.

Exit codes: 0 done${exitCodes.map((exit) => `, ${exit} ${meaning[exit] ?? 'failed'}`).join('')}.`,
    );
  for (const command of await Promise.all(listed)) program.addCommand(command);
  program.configureHelp({ subcommandTerm });
  program.hook('preAction', (_program, command) => settleKubeconfig(io, command));
  settle(program, io);
  return program;
}

const usual = new Help();
function subcommandTerm(command: Command): string {
  const { usage } = commands[command.name()] ?? {};
  return usage === undefined ? usual.subcommandTerm(command) : `${command.name()} ${usage}`;
}

/** Sub-commands do not inherit these. */
function settle(command: Command, io: CliIo): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => void io.stdout.write(text),
    writeErr: (text) => void io.stderr.write(text),
    getOutHelpWidth: () => 110,
    getErrHelpWidth: () => 110,
    outputError: (text, write) => write(text.replace(/^error: /, 'error: ')),
  });
  for (const child of command.commands) settle(child, io);
}

/** Completion scripts are made of all commands; a help, a version or a misspelt name needs none. */
function neededBy(args: readonly string[]): readonly string[] {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'));
  const asked = first === 'help' ? second : first;
  if (asked === 'completion') return Object.keys(commands);
  if (asked === undefined) return [];
  return Object.entries(commands).flatMap(([name, { alias }]) => (asked === name || asked === alias ? [name] : []));
}

/** `args` without node and script. Never throws, never exits. */
export async function runCli(args: readonly string[], io: CliIo): Promise<number> {
  const over = new AbortController();
  try {
    const running = { ...io, signal: abortsWith(io.signal, over.signal) };
    const end = args.includes('--') ? args.indexOf('--') : args.length;
    const own = args.filter((arg, at) => arg !== verboseFlag || at > end);
    if (own.length < args.length) showRequests(running);
    const program = await createProgram(running, neededBy(own));
    await program.parseAsync(own, { from: 'user' });
    return 0;
  } catch (error) {
    // Commander has said it already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : codes.invalid_input.exit;
    if (io.signal.aborted) return interrupted;
    const { exit, text } = explain(error);
    io.stderr.write(text);
    return exit;
  } finally {
    // Connections that a command keeps close, so that the process ends at once.
    over.abort(new Error('the command has ended'));
  }
}
