/** How the test bed tells iproute2 several things at once. */
import { runCommand } from '#scripts/setup/run-command.ts';

/** Several commands of `ip` in one process. `args` go before them: `-n NAMESPACE`, `-force`. */
export const ipBatch = (args: readonly string[], lines: readonly string[]): Promise<string> =>
  runCommand('ip', [...args, '-batch', '-'], { input: `${lines.join('\n')}\n` });
