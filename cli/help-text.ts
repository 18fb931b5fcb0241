/** What `--help` of a command prints, the texts after it included. */
import type { Command } from 'commander';

export function capturedHelp(command: Command): string {
  let text = '';
  const before = command.configureOutput();
  command.configureOutput({
    ...before,
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  command.configureOutput(before);
  return text;
}
