/** isthmus get events: the tenant's feed, once or followed. */
import { Command } from 'commander';
import * as yaml from 'yaml';
import { type BrokerClient, openBroker } from '#cli/broker/broker-client.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import type { FeedEvent } from '#shared/schema/api/resources.ts';
import { outputOption, positiveInt } from './options.ts';

interface EventOptions {
  readonly output: Format;
  readonly limit: number;
  readonly subject?: string;
  readonly follow?: boolean;
}

const followSeconds = 20;

export const eventsCommand = (io: CliIo): Command =>
  new Command('events')
    .description('what happened, oldest first')
    .option('--limit <n>', 'how many of the newest', positiveInt, 50)
    .option('--subject <subject>', 'only those about this, for example peering/pe_…')
    .option('-f, --follow', 'go on with what happens from now on')
    .addOption(outputOption())
    .action(async (options: EventOptions) => {
      const broker = await openBroker(io);
      try {
        await printEvents(io, broker, options);
      } finally {
        broker.close();
      }
    });

async function printEvents(io: CliIo, broker: BrokerClient, options: EventOptions): Promise<void> {
  const { output, limit, subject, follow } = options;
  const read = (cursor: string | undefined, wait?: number) =>
    broker.api.listEvents({ query: { limit: 200, subject, cursor, wait } }, { timeoutMs: ((wait ?? 0) + 15) * 1_000 });

  let cursor: string | undefined;
  let kept: FeedEvent[] = [];
  for (;;) {
    const page = await read(cursor);
    cursor = page.cursor;
    if (page.items.length === 0) break;
    kept = [...kept, ...page.items].slice(-limit);
  }
  if (!follow) {
    printListing(io, output, {
      items: kept,
      columns: [
        { head: 'time', cell: ({ time }) => time },
        { head: 'type', cell: ({ type }) => shortType(type) },
        { head: 'subject', cell: ({ subject: about }) => about },
        { head: 'what', cell: ({ data }) => facts(data) },
      ],
      name: ({ id }) => id,
      none: 'no events within the last day',
    });
    return;
  }
  for (const event of kept) printEvent(io, output, event);
  while (!io.signal.aborted) {
    const page = await read(cursor, followSeconds);
    cursor = page.cursor;
    for (const event of page.items) printEvent(io, output, event);
  }
  io.signal.throwIfAborted();
}

function printEvent(io: CliIo, output: Format, event: FeedEvent): void {
  switch (output) {
    case 'json':
      io.stdout.write(`${JSON.stringify(event)}\n`);
      return;
    case 'yaml':
      io.stdout.write(`---\n${yaml.stringify(event)}`);
      return;
    case 'name':
      io.stdout.write(`${event.id}\n`);
      return;
    case 'table':
      io.stdout.write(`${event.time}   ${shortType(event.type)}   ${event.subject}   ${facts(event.data)}\n`);
  }
}

/** `peering.requested` of `dev.isthmus.peering.requested.v1`; `-o json` has it whole. */
const shortType = (type: string): string => type.replace(/^dev\.isthmus\./, '').replace(/\.v1$/, '');

/** Plain values only: the rest is in `-o json`. */
const facts = (data: Readonly<Record<string, unknown>>): string =>
  Object.entries(data)
    .filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ');
