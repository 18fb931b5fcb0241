/** Prints lists in the format that `-o` names. JSON and YAML are what the broker answered, unshortened. */
import * as yaml from 'yaml';
import type { CliIo } from './io.ts';
import { type Column, table } from './table.ts';

export const formats = ['table', 'json', 'yaml', 'name'] as const;
export type Format = (typeof formats)[number];

export interface Listing<T> {
  readonly items: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly name: (item: T) => string;
  /** Said on stderr instead of an empty table. */
  readonly none: string;
}

export function printListing<T>(io: CliIo, format: Format, listing: Listing<T>): void {
  switch (format) {
    case 'json':
      io.stdout.write(`${JSON.stringify({ items: listing.items }, null, 2)}\n`);
      return;
    case 'yaml':
      io.stdout.write(yaml.stringify({ items: listing.items }));
      return;
    case 'name':
      for (const item of listing.items) io.stdout.write(`${listing.name(item)}\n`);
      return;
    case 'table':
      if (listing.items.length === 0) io.stderr.write(`${listing.none}\n`);
      else io.stdout.write(table(listing.items, listing.columns));
  }
}

export function printObject(io: Pick<CliIo, 'stdout'>, format: 'json' | 'yaml', value: unknown): void {
  io.stdout.write(format === 'json' ? `${JSON.stringify(value, null, 2)}\n` : yaml.stringify(value));
}

/** Several, as `kubectl apply -f -` takes them. */
export function printManifests(io: CliIo, format: 'json' | 'yaml', manifests: readonly object[]): void {
  if (format === 'json') {
    printObject(io, 'json', { apiVersion: 'v1', kind: 'List', items: manifests });
    return;
  }
  const style = { lineWidth: 0, aliasDuplicateObjects: false };
  io.stdout.write(manifests.map((object) => `---\n${yaml.stringify(object, style)}`).join(''));
}
