/** isthmus status: one cluster at a glance, with its kubeconfig alone; where this command is logged in at its broker, both ends of each peering. */
import { Command, Option } from 'commander';
import type { CliIo } from '#cli/output/io.ts';
import type { StatusOptions } from '#cli/status/show.ts';
import { contextOption, kubeconfigOption } from './kubeconfig-option.ts';

export const statusCommand = (io: CliIo): Command =>
  new Command('status')
    .argument('[peer]', 'only this peer')
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .option('-w, --watch', 'print it again when it changes, until interrupted')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'))
    .addHelpText('after', '\nExamples:\n  isthmus status --kubeconfig rome.kubeconfig\n  isthmus status milan --watch')
    .action(async (peer: string | undefined, options: StatusOptions) => {
      const { showStatus } = await import('#cli/status/show.ts');
      await showStatus(io, peer, options);
    });
