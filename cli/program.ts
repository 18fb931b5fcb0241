/** The command tree, and what running it comes to: an exit code. */
import { Command, CommanderError } from 'commander';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { codes } from '#shared/errors/codes.ts';
import { showRequests } from './cluster/verbose.ts';
import { settleKubeconfig } from './commands/kubeconfig-option.ts';
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

/** In the order of the help. Each is loaded when it is asked for: a start spends most of its time on loading. */
const commands: Readonly<Record<string, () => Promise<(io: CliIo) => Command>>> = {
  broker: async () => (await import('./commands/broker.ts')).brokerCommand,
  login: async () => (await import('./commands/login.ts')).loginCommand,
  join: async () => (await import('./commands/join.ts')).joinCommand,
  leave: async () => (await import('./commands/leave.ts')).leaveCommand,
  label: async () => (await import('./commands/label.ts')).labelCommand,
  'rotate-key': async () => (await import('./commands/rotate-key.ts')).rotateKeyCommand,
  lock: async () => (await import('./commands/lock.ts')).lockCommand,
  trust: async () => (await import('./commands/trust.ts')).trustCommand,
  check: async () => (await import('./commands/check.ts')).checkCommand,
  install: async () => (await import('./commands/install.ts')).installCommand,
  uninstall: async () => (await import('./commands/uninstall.ts')).uninstallCommand,
  peer: async () => (await import('./commands/peer.ts')).peerCommand,
  unpeer: async () => (await import('./commands/peer.ts')).unpeerCommand,
  network: async () => (await import('./commands/network.ts')).networkCommand,
  generate: async () => (await import('./commands/generate.ts')).generateCommand,
  delete: async () => (await import('./commands/generate.ts')).deleteCommand,
  offload: async () => (await import('./commands/offload.ts')).offloadCommand,
  unoffload: async () => (await import('./commands/offload.ts')).unoffloadCommand,
  slice: async () => (await import('./commands/slice.ts')).sliceCommand,
  volume: async () => (await import('./commands/volume.ts')).volumeCommand,
  move: async () => (await import('./commands/move.ts')).moveCommand,
  cordon: async () => (await import('./commands/cordon.ts')).cordonCommand,
  uncordon: async () => (await import('./commands/cordon.ts')).uncordonCommand,
  drain: async () => (await import('./commands/cordon.ts')).drainCommand,
  status: async () => (await import('./commands/status.ts')).statusCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  'support-bundle': async () => (await import('./commands/support-bundle.ts')).supportBundleCommand,
  get: async () => (await import('./commands/get.ts')).getCommand,
  describe: async () => (await import('./commands/describe.ts')).describeCommand,
  invite: async () => (await import('./commands/invite.ts')).inviteCommand,
  redeem: async () => (await import('./commands/redeem.ts')).redeemCommand,
  requests: async () => (await import('./commands/requests.ts')).requestsCommand,
  directory: async () => (await import('./commands/directory.ts')).directoryCommand,
  key: async () => (await import('./commands/key.ts')).keyCommand,
  webhook: async () => (await import('./commands/webhook.ts')).webhookCommand,
  'event-target': async () => (await import('./commands/event-target.ts')).eventTargetCommand,
  member: async () => (await import('./commands/member.ts')).memberCommand,
  tenant: async () => (await import('./commands/tenant.ts')).tenantCommand,
  version: async () => (await import('./commands/version.ts')).versionCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand,
};

/** The whole tree; `only`: with this command alone, of those that there are. */
export async function createProgram(io: CliIo, only?: string): Promise<Command> {
  const wanted = Object.entries(commands).filter(([name]) => only === undefined || name === only);
  const loaded = await Promise.all(wanted.map(([, load]) => load()));
  const program = new Command('isthmus')
    .description(
      'Kubernetes clusters lend each other capacity: a provider cluster appears in a consumer cluster as one more node.',
    )
    .version(version, versionFlags.join(', '), 'print the version of this program')
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
  for (const command of loaded) program.addCommand(command(io));
  program.hook('preAction', (_program, command) => settleKubeconfig(io, command));
  settle(program, io);
  return program;
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

const versionFlags = ['-V', '--version'];
/** Completion scripts are made of all commands, the version of none. */
const needsAlone = (name: string): boolean =>
  versionFlags.includes(name) || (Object.hasOwn(commands, name) && name !== 'completion');

/** `args` without node and script. Never throws, never exits. */
export async function runCli(args: readonly string[], io: CliIo): Promise<number> {
  const over = new AbortController();
  try {
    const running = { ...io, signal: abortsWith(io.signal, over.signal) };
    const end = args.includes('--') ? args.indexOf('--') : args.length;
    const own = args.filter((arg, at) => arg !== verboseFlag || at > end);
    if (own.length < args.length) showRequests(running);
    const [name = ''] = own;
    const program = await createProgram(running, needsAlone(name) ? name : undefined);
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
