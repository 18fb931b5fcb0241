/** isthmus label: the tenant's own words about its clusters. */
import { Command, InvalidArgumentError } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/io.ts';
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
  new Command('label').description('label what you have, to find it in lists').addCommand(clusterCommand(io));

/** Somebody labels at the same time, or the agent just reported. */
const attempts = 5;

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
      withBroker(io, async (broker) => {
        for (let attempt = 1; ; attempt++) {
          const before = await broker.api.getCluster({ path: { cluster } });
          const labels = { ...before.labels };
          for (const [key, value] of changes) {
            if (value === undefined) delete labels[key];
            else labels[key] = value;
          }
          try {
            const headers = { 'if-match': `"${before.version}"` };
            const now =
              changes.length === 0
                ? before
                : await broker.api.changeCluster({ path: { cluster }, body: { labels } }, { headers });
            for (const [key, value] of Object.entries(now.labels)) io.stdout.write(`${key}=${value}\n`);
            return;
          } catch (error) {
            if (codeOf(error) !== 'precondition_failed' || attempt === attempts) throw error;
          }
        }
      }),
    );
