/** What of Kubernetes' own suite is run, and where. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Ground, openRemoteGround } from './ground.ts';
import type { Options } from './options.ts';
import { halfReasons, reasons } from './reasons.ts';
import type { Reason } from './report.ts';
import { driverFile } from './storage/driver.ts';
import { openStorageGround } from './storage/ground.ts';
import { storageReasonsOf } from './storage/reasons.ts';
import { driverSuites, type Group, groups, type Selection, type Share, selectionOf } from './suite.ts';
import type { TableName } from './table.ts';

export interface Subject {
  readonly table: TableName;
  /** Of the clusters' state, in `.build`. */
  readonly folder: string;
  readonly reasons: readonly Reason[];
  /** All that the table has. */
  readonly selections: readonly Selection[];
  /** Whether the options ask for the selection at this place. */
  isWanted(at: number): boolean;
  open(dir: string, log: (line: string) => void): Promise<Ground>;
}

const tableOf = { all: 'all nodes virtual', half: 'half of the nodes virtual' } as const satisfies Record<
  Share,
  TableName
>;
const reasonsOf: Record<Share, readonly Reason[]> = { all: reasons, half: halfReasons };

export function subjectOf({ storage, groups: wanted, virtual }: Options): Subject {
  if (storage !== undefined)
    return {
      table: `storage ${storage}`,
      folder: `conformance-storage-${storage}`,
      reasons: storageReasonsOf[storage],
      selections: [driverSuites],
      isWanted: () => true,
      open: (dir, log) => openStorageGround(storage, dir, log),
    };
  const names = (Object.keys(groups) as Group[]).filter((name) => groups[name].virtual === virtual);
  return {
    table: tableOf[virtual],
    folder: `conformance-${virtual}`,
    reasons: reasonsOf[virtual],
    selections: names.map(selectionOf),
    isWanted: (at) => wanted.some((group) => group === names[at]),
    open: (dir, log) => openRemoteGround({ dir, log, virtual }),
  };
}

/** Writes the file of the driver that the suite is told of; undefined where it needs none. */
export function driverOf({ storage }: Options, dir: string): string | undefined {
  if (storage === undefined) return undefined;
  mkdirSync(dir, { recursive: true });
  const file = path.join(dir, 'driver.json');
  writeFileSync(file, driverFile(storage));
  return file;
}
