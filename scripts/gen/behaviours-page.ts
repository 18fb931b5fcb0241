/** `docs/design/behaviours.md`: statements are written there, the last column is filled in from the titles of tests. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const behavioursPath = 'docs/design/behaviours.md';

export interface Behaviour {
  readonly id: string;
  /** Needed for compatibility, or an improvement on Liqo. */
  readonly kind: '=' | '+';
  readonly statement: string;
  /** Why no test proves it; undefined where tests should. */
  readonly open?: string;
}

const rooms = ['agent', 'cli', 'test'];
const self = 'offloading-checklist.test.ts';
/** A text that begins with ids: a title, or the cell of a table that its title shows. */
const beginning = /['"`]((?:B\d{3}\b[ ,]*)+)/g;
const row = /^\| (B\d{3}) \| ([=+]) \| ([^|]+) \|([^|]*)\|$/;
const openMark = 'open: ';

function* testFiles(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const at = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== 'node_modules') yield* testFiles(at);
    } else if (entry.name !== self && (entry.name.endsWith('.test.ts') || folder.endsWith('scenarios'))) yield at;
  }
}

/** Id to the files with tests whose titles begin with it, as paths from `root`, sorted. */
export function provingFiles(root: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  for (const file of rooms.flatMap((room) => [...testFiles(path.join(root, room))])) {
    for (const [, list = ''] of readFileSync(file, 'utf8').matchAll(beginning)) {
      for (const [id] of list.matchAll(/B\d{3}/g)) {
        found.set(id, (found.get(id) ?? new Set()).add(path.relative(root, file)));
      }
    }
  }
  return new Map([...found].map(([id, files]) => [id, [...files].sort()]));
}

export const readBehaviours = (root: string): string => readFileSync(path.join(root, behavioursPath), 'utf8');

export function behavioursOf(page: string): readonly Behaviour[] {
  return page.split('\n').flatMap((line): Behaviour[] => {
    const [, id = '', kind, statement = '', last = ''] = row.exec(line) ?? [];
    if (id === '') return [];
    const sentence = last.trim();
    const open = sentence.startsWith(openMark) ? { open: sentence.slice(openMark.length) } : {};
    return [{ id, kind: kind === '+' ? '+' : '=', statement: statement.trim(), ...open }];
  });
}

/** The page with its last column as the tests are now. A reason for an open line stays as it is written. */
export function behavioursPage(page: string, proving: ReadonlyMap<string, readonly string[]>): string {
  const lines = page.split('\n').map((line) => {
    const [, id = '', kind, statement, last = ''] = row.exec(line) ?? [];
    if (id === '' || last.trim().startsWith(openMark)) return line;
    const files = (proving.get(id) ?? []).map((file) => `\`${file}\``);
    return `| ${id} | ${kind} | ${statement} | ${files.join(', ')} |`;
  });
  return lines.join('\n');
}
