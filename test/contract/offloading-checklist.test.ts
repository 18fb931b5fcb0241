/** The checklist of observable behaviours of offloading, B001 to B130: each begins the title of the tests that prove it, or is excused here. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const ids = Array.from({ length: 130 }, (_, i) => `B${String(i + 1).padStart(3, '0')}`);
const rooms = ['agent', 'cli', 'test'];
const self = 'offloading-checklist.test.ts';

const storage =
  'storage is not offloaded: a claim that was to get its volume on a virtual node stays Pending and says so';

/** Why no test proves it. An entry goes when its test comes. */
const excused: Readonly<Record<string, string>> = {
  B106: storage,
  B107: storage,
  B108: storage,
  B109: storage,
  B130: 'there is no command that moves a volume, so none that can lose one',
};

function* testFiles(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const at = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== 'node_modules') yield* testFiles(at);
    } else if (entry.name !== self && (entry.name.endsWith('.test.ts') || folder.endsWith('scenarios'))) yield at;
  }
}

/** A text that begins with ids: a title, or the cell of a table that its title shows. */
const beginning = /['"`]((?:B\d{3}\b[ ,]*)+)/g;

/** Id to the test files that have it, relative to the repository. */
function coverage(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const file of rooms.flatMap((room) => [...testFiles(path.join(repositoryRoot, room))])) {
    for (const [, list = ''] of readFileSync(file, 'utf8').matchAll(beginning)) {
      for (const [id] of list.matchAll(/B\d{3}/g)) {
        found.set(id, (found.get(id) ?? new Set()).add(path.relative(repositoryRoot, file)));
      }
    }
  }
  return found;
}

const covered = coverage();

describe('the offloading checklist', () => {
  test.each(ids)('%s is proved by a test, or excused with a reason, and not both', (id) => {
    const files = [...(covered.get(id) ?? [])];
    const excuse = excused[id];
    if (excuse === undefined) expect(files, `no title begins with ${id}`).not.toEqual([]);
    else expect(files, `${id} is proved now, so its excuse has to go: ${excuse}`).toEqual([]);
  });

  test('has no other ids', () => {
    expect([...covered.keys(), ...Object.keys(excused)].filter((id) => !ids.includes(id))).toEqual([]);
  });
});
