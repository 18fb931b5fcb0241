/** isthmus get: lists of what the broker knows. */
import { Command } from 'commander';
import { openBroker } from '#cli/broker/broker-client.ts';
import { age } from '#cli/output/duration.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { memoryText } from '#cli/output/quantity-text.ts';
import { paintFor, toneOf } from '#cli/output/style.ts';
import type { Column } from '#cli/output/table.ts';
import { labelsText, resourcesText } from '#cli/peerings/describe.ts';
import type { AuditRecord, Cluster, Peering } from '#shared/schema/api/resources.ts';
import { eventsCommand } from './get-events.ts';
import { outputOption, positiveInt } from './options.ts';

const selectorMeaning = 'only those with these labels, KEY=VALUE or KEY, separated by commas';

interface Listed {
  readonly output: Format;
}

interface PeeringsOptions extends Listed {
  readonly all?: boolean;
  readonly cluster?: string;
  readonly selector?: string;
}

export const getCommand = (io: CliIo): Command =>
  new Command('get')
    .addCommand(clustersCommand(io))
    .addCommand(peeringsCommand(io))
    .addCommand(eventsCommand(io))
    .addCommand(auditCommand(io));

const clustersCommand = (io: CliIo): Command =>
  new Command('clusters')
    .alias('cluster')
    .description('clusters that joined')
    .option('--all', 'also those that left')
    .option('-l, --selector <selector>', selectorMeaning)
    .addOption(outputOption())
    .action(async ({ output, all, selector }: Listed & { all?: boolean; selector?: string }) => {
      const broker = await openBroker(io);
      try {
        const items = await broker.all((page) =>
          broker.api.listClusters({ query: { ...page, includeLeft: all, labels: selector } }),
        );
        printListing(io, output, {
          items,
          columns: clusterColumns(io),
          name: ({ name }) => `cluster/${name}`,
          none: selector
            ? `no cluster has the labels ${selector}`
            : 'no cluster has joined; run `isthmus join NAME --kubeconfig FILE`',
        });
      } finally {
        broker.close();
      }
    });

function clusterColumns(io: CliIo): Column<Cluster>[] {
  const paint = paintFor(io.stdout, io.env);
  const now = io.clock.now();
  return [
    { head: 'name', cell: ({ name }) => name },
    {
      head: 'state',
      cell: ({ state, online }) => (state === 'left' ? 'left' : online ? 'connected' : 'disconnected'),
      paint: (text) => paint(toneOf(text), text),
    },
    { head: 'seen', cell: ({ lastSeenAt }) => age(Date.parse(lastSeenAt), now) },
    { head: 'kubernetes', cell: ({ kubernetesVersion }) => kubernetesVersion },
    { head: 'agent', cell: ({ agentVersion }) => agentVersion },
    { head: 'nodes', cell: ({ nodes }) => String(nodes) },
    { head: 'cpu', cell: ({ allocatable }) => allocatable.cpu ?? '-' },
    { head: 'memory', cell: ({ allocatable }) => memoryText(allocatable.memory) },
    { head: 'age', cell: ({ joinedAt }) => age(Date.parse(joinedAt), now) },
    { head: 'labels', cell: ({ labels }) => labelsText(labels) },
  ];
}

const peeringsCommand = (io: CliIo): Command =>
  new Command('peerings')
    .alias('peering')
    .description('peerings between clusters')
    .option('--all', 'also those that ended within the last day')
    .option('--cluster <name>', 'only those in which this cluster takes part')
    .option('-l, --selector <selector>', selectorMeaning)
    .addOption(outputOption())
    .action(async ({ output, all, cluster, selector }: PeeringsOptions) => {
      const broker = await openBroker(io);
      try {
        const items = await broker.all((page) =>
          broker.api.listPeerings({ query: { ...page, includeGone: all, cluster, labels: selector } }),
        );
        printListing(io, output, {
          items,
          columns: peeringColumns(io),
          name: ({ id }) => `peering/${id}`,
          none: selector
            ? `no peering has the labels ${selector}`
            : 'no peerings; run `isthmus peer CONSUMER PROVIDER`',
        });
      } finally {
        broker.close();
      }
    });

function peeringColumns(io: CliIo): Column<Peering>[] {
  const paint = paintFor(io.stdout, io.env);
  const now = io.clock.now();
  return [
    { head: 'consumer', cell: ({ consumer }) => consumer },
    { head: 'provider', cell: ({ provider }) => provider },
    { head: 'phase', cell: ({ phase }) => phase, paint: (text, { phase }) => paint(toneOf(phase), text) },
    { head: 'node', cell: ({ nodeName }) => nodeName },
    { head: 'resources', cell: ({ granted, resources }) => resourcesText(granted ?? resources) },
    { head: 'age', cell: ({ createdAt }) => age(Date.parse(createdAt), now) },
    { head: 'labels', cell: ({ labels }) => labelsText(labels) || '-' },
    { head: 'waiting for', cell: ({ waitingFor, phase }) => (phase === 'Ready' ? '-' : waitingFor) },
  ];
}

const auditCommand = (io: CliIo): Command =>
  new Command('audit')
    .description('changes with their principals, newest first')
    .option('--limit <n>', 'how many records', positiveInt, 50)
    .option('--subject <subject>', 'only those about this, for example cluster/rome')
    .addOption(outputOption())
    .action(async ({ output, limit, subject }: Listed & { limit: number; subject?: string }) => {
      const broker = await openBroker(io);
      try {
        const items = await broker.all((page) => broker.api.listAudit({ query: { ...page, subject } }), limit);
        printListing(io, output, { items, columns: auditColumns, name: ({ id }) => id, none: 'no audit records' });
      } finally {
        broker.close();
      }
    });

const auditColumns: Column<AuditRecord>[] = [
  { head: 'time', cell: ({ at }) => at },
  { head: 'who', cell: ({ principal }) => principal },
  { head: 'from', cell: ({ from }) => from },
  { head: 'action', cell: ({ action }) => action },
  { head: 'subject', cell: ({ subject }) => subject },
  { head: 'request', cell: ({ requestId }) => requestId },
];
