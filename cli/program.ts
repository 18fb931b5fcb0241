/** The command tree, and what running it comes to: an exit code. */
import { Command, CommanderError } from 'commander';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { codes } from '#shared/errors/codes.ts';
import { showRequests } from './cluster/verbose.ts';
import { brokerCommand } from './commands/broker.ts';
import { checkCommand } from './commands/check.ts';
import { completionCommand } from './commands/completion.ts';
import { cordonCommand, drainCommand, uncordonCommand } from './commands/cordon.ts';
import { describeCommand } from './commands/describe.ts';
import { directoryCommand } from './commands/directory.ts';
import { doctorCommand } from './commands/doctor.ts';
import { eventTargetCommand } from './commands/event-target.ts';
import { deleteCommand, generateCommand } from './commands/generate.ts';
import { getCommand } from './commands/get.ts';
import { installCommand } from './commands/install.ts';
import { inviteCommand } from './commands/invite.ts';
import { joinCommand } from './commands/join.ts';
import { keyCommand } from './commands/key.ts';
import { settleKubeconfig } from './commands/kubeconfig-option.ts';
import { labelCommand } from './commands/label.ts';
import { leaveCommand } from './commands/leave.ts';
import { lockCommand } from './commands/lock.ts';
import { loginCommand } from './commands/login.ts';
import { memberCommand } from './commands/member.ts';
import { moveCommand } from './commands/move.ts';
import { networkCommand } from './commands/network.ts';
import { offloadCommand, unoffloadCommand } from './commands/offload.ts';
import { peerCommand, unpeerCommand } from './commands/peer.ts';
import { redeemCommand } from './commands/redeem.ts';
import { requestsCommand } from './commands/requests.ts';
import { rotateKeyCommand } from './commands/rotate-key.ts';
import { sliceCommand } from './commands/slice.ts';
import { statusCommand } from './commands/status.ts';
import { supportBundleCommand } from './commands/support-bundle.ts';
import { tenantCommand } from './commands/tenant.ts';
import { trustCommand } from './commands/trust.ts';
import { uninstallCommand } from './commands/uninstall.ts';
import { versionCommand } from './commands/version.ts';
import { volumeCommand } from './commands/volume.ts';
import { webhookCommand } from './commands/webhook.ts';
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

export function createProgram(io: CliIo): Command {
  const program = new Command('isthmus')
    .description(
      'Kubernetes clusters lend each other capacity: a provider cluster appears in a consumer cluster as one more node.',
    )
    .version(version, '-V, --version', 'print the version of this program')
    .option(verboseFlag, 'with any command: show each request on stderr: method, address, status, time; no secrets')
    .helpCommand('help [command]', 'help about a command')
    .showHelpAfterError('(add --help for what is accepted)')
    .addCommand(brokerCommand(io))
    .addCommand(loginCommand(io))
    .addCommand(joinCommand(io))
    .addCommand(leaveCommand(io))
    .addCommand(labelCommand(io))
    .addCommand(rotateKeyCommand(io))
    .addCommand(lockCommand(io))
    .addCommand(trustCommand(io))
    .addCommand(checkCommand(io))
    .addCommand(installCommand(io))
    .addCommand(uninstallCommand(io))
    .addCommand(peerCommand(io))
    .addCommand(unpeerCommand(io))
    .addCommand(networkCommand(io))
    .addCommand(generateCommand(io))
    .addCommand(deleteCommand(io))
    .addCommand(offloadCommand(io))
    .addCommand(unoffloadCommand(io))
    .addCommand(sliceCommand(io))
    .addCommand(volumeCommand(io))
    .addCommand(moveCommand(io))
    .addCommand(cordonCommand(io))
    .addCommand(uncordonCommand(io))
    .addCommand(drainCommand(io))
    .addCommand(statusCommand(io))
    .addCommand(doctorCommand(io))
    .addCommand(supportBundleCommand(io))
    .addCommand(getCommand(io))
    .addCommand(describeCommand(io))
    .addCommand(inviteCommand(io))
    .addCommand(redeemCommand(io))
    .addCommand(requestsCommand(io))
    .addCommand(directoryCommand(io))
    .addCommand(keyCommand(io))
    .addCommand(webhookCommand(io))
    .addCommand(eventTargetCommand(io))
    .addCommand(memberCommand(io))
    .addCommand(tenantCommand(io))
    .addCommand(versionCommand(io))
    .addCommand(completionCommand(io))
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

/** `args` without node and script. Never throws, never exits. */
export async function runCli(args: readonly string[], io: CliIo): Promise<number> {
  const over = new AbortController();
  try {
    const running = { ...io, signal: abortsWith(io.signal, over.signal) };
    const end = args.includes('--') ? args.indexOf('--') : args.length;
    const own = args.filter((arg, at) => arg !== verboseFlag || at > end);
    if (own.length < args.length) showRequests(running);
    await createProgram(running).parseAsync(own, { from: 'user' });
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
