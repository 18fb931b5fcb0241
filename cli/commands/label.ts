/** isthmus label: the tenant's own words about its clusters and peerings. */
import { Command, InvalidArgumentError } from 'commander';
import type { BrokerClient } from '#cli/broker/broker-client.ts';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/output/io.ts';
import { mustFindPeering } from '#cli/peerings/follow.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { clusterName } from './options.ts';

/** Undefined: taken away. */
type Change = readonly [key: string, value: string | undefined];

function labelChange(text: string, before: readonly Change[] = []): readonly Change[] {
  const [, key, value] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  if (key !== undefined) return [...before, [key, value]];
  if (/^[^=]+-$/.test(text)) return [...before, [text.slice(0, -1), undefined]];
  throw new InvalidArgumentError('Accepted is KEY=VALUE, or KEY- to take a label away.');
}

export const labelCommand = (io: CliIo): Command =>
  new Command('label').addCommand(clusterCommand(io)).addCommand(peeringCommand(io));

interface Labelled {
  readonly labels: Readonly<Record<string, string>>;
  readonly version: number;
}

interface Target<T extends Labelled> {
  readonly read: (broker: BrokerClient) => Promise<T>;
  readonly write: (
    broker: BrokerClient,
    before: T,
    body: { readonly labels: Readonly<Record<string, string>> },
    options: { readonly headers: Record<string, string> },
  ) => Promise<T>;
}

/** A concurrent label command, or a report of the agent, changed the version. */
const attempts = 5;

/** Without changes, shows the labels. */
const label = <T extends Labelled>(io: CliIo, changes: readonly Change[], { read, write }: Target<T>): Promise<void> =>
  withBroker(io, async (broker) => {
    for (let attempt = 1; ; attempt++) {
      const before = await read(broker);
      const labels = { ...before.labels };
      for (const [key, value] of changes) {
        if (value === undefined) delete labels[key];
        else labels[key] = value;
      }
      try {
        const headers = { 'if-match': `"${before.version}"` };
        const now = changes.length === 0 ? before : await write(broker, before, { labels }, { headers });
        for (const [key, value] of Object.entries(now.labels)) io.stdout.write(`${key}=${value}\n`);
        return;
      } catch (error) {
        if (codeOf(error) !== 'precondition_failed' || attempt === attempts) throw error;
      }
    }
  });

const clusterCommand = (io: CliIo): Command =>
  new Command('cluster')
    .description('label a cluster, or show its labels; other tenants do not see them')
    .argument('<name>', 'name of the cluster', clusterName)
    .argument('[changes...]', 'KEY=VALUE, or KEY- to take a label away', labelChange)
    .addHelpText(
      'after',
      `
Example:
  isthmus label cluster rome tier=gold zone-
  isthmus get clusters --selector tier=gold`,
    )
    .action((cluster: string, changes: readonly Change[] = []) =>
      label(io, changes, {
        read: (broker) => broker.api.getCluster({ path: { cluster } }),
        write: (broker, _, body, options) => broker.api.changeCluster({ path: { cluster }, body }, options),
      }),
    );

const peeringCommand = (io: CliIo): Command =>
  new Command('peering')
    .description('label a peering, or show its labels; the tenant of the other cluster does not see them')
    .argument('<consumer>', 'cluster that has the node', clusterName)
    .argument('<provider>', 'cluster that runs the pods', clusterName)
    .argument('[changes...]', 'KEY=VALUE, or KEY- to take a label away', labelChange)
    .addHelpText(
      'after',
      `
Example:
  isthmus label peering rome milan team=shop stage-
  isthmus get peerings --selector team=shop`,
    )
    .action((consumer: string, provider: string, changes: readonly Change[] = []) =>
      label(io, changes, {
        read: (broker) => mustFindPeering(broker, consumer, provider),
        write: (broker, { id }, body, options) => broker.api.changePeering({ path: { peering: id }, body }, options),
      }),
    );
