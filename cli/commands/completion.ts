/** isthmus completion: shell scripts made from the command tree, so they cannot forget a command. */
import { Argument, Command } from 'commander';
import type { CliIo } from '#cli/output/io.ts';
import { completionScripts, type Shell } from './completion-scripts.ts';

const shells = Object.keys(completionScripts) as readonly Shell[];

export const completionCommand = (io: CliIo): Command =>
  new Command('completion')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .addHelpText(
      'after',
      `
Examples:
  source <(isthmus completion bash)
  isthmus completion zsh > "\${fpath[1]}/_isthmus"
  isthmus completion fish > ~/.config/fish/completions/isthmus.fish
  isthmus completion powershell | Out-String | Invoke-Expression`,
    )
    .action((shell: Shell, _options: unknown, command: Command) => {
      io.stdout.write(completionScripts[shell](command.parent ?? command));
    });
