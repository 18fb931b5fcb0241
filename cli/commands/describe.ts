/** isthmus describe peering, isthmus describe pod. */
import { Command, Option } from 'commander';
import { openBroker } from '#cli/broker/broker-client.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printObject } from '#cli/output/print.ts';
import { paintFor } from '#cli/output/style.ts';
import { describePeering } from '#cli/peerings/describe.ts';
import { mustFindPeering } from '#cli/peerings/follow.ts';
import { describePodCommand } from './describe-pod.ts';
import { clusterName } from './options.ts';

export const describeCommand = (io: CliIo): Command =>
  new Command('describe').addCommand(describePodCommand(io)).addCommand(
    new Command('peering')
      .description("both ends' conditions, what is waited for, what to do next")
      .argument('<consumer>', 'cluster that has the node', clusterName)
      .argument('<provider>', 'cluster that runs the pods', clusterName)
      .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'))
      .action(async (consumer: string, provider: string, { output }: { output: 'text' | 'json' | 'yaml' }) => {
        const broker = await openBroker(io);
        try {
          const peering = await mustFindPeering(broker, consumer, provider);
          if (output !== 'text') return printObject(io, output, peering);
          io.stdout.write(describePeering(peering, paintFor(io.stdout, io.env), io.clock.now()));
        } finally {
          broker.close();
        }
      }),
  );
