/** The map of the house against the house: paths, links and citations lead somewhere, and a walk stays in the rooms that it names. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(path.join(root, file)));
const rooms = [...new Set(tracked.flatMap((file) => (file.includes('/') ? [file.split('/')[0] ?? ''] : [])))];
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

const mapPage = 'docs/architecture.md';
/** Pages whose every path has to exist. Others quote paths of users, too. */
const maps = tracked.filter((file) => file === mapPage || /^docs\/(adr|design)\/.*\.md$/.test(file));
const linked = tracked.filter((file) => /^(docs\/.*|README|CONTRIBUTING)\.md$|^docs\/[^/]*\.md$/.test(file));

const withoutFences = (text: string): string => text.replaceAll(/^```[\s\S]*?^```$/gm, '');

const withoutCode = (text: string): string => withoutFences(text).replaceAll(/`[^`\n]*`/g, '');

/** Texts in backticks that begin with a folder of the repository: paths, not globs or samples. */
function pathsIn(text: string): string[] {
  const quoted = [...withoutFences(text).matchAll(/`([^`\s]+)`/g)].map(([, one = '']) => one);
  return quoted.filter((one) => rooms.includes(one.split('/')[0] ?? '') && /^[\w./-]+\/[\w./-]*$/.test(one));
}

/** As GitHub makes them. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');

function anchorsOf(file: string): ReadonlySet<string> {
  const text = withoutFences(read(file));
  const headings = [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => slugOf(heading));
  const written = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id);
  return new Set([...headings, ...written]);
}

/** Why `target`, with or without an anchor, leads nowhere; undefined when it leads somewhere. */
function brokenLink(file: string, anchor: string | undefined): string | undefined {
  if (!existsSync(path.join(root, file))) return `${file} does not exist`;
  if (!anchor || !file.endsWith('.md')) return undefined;
  return anchorsOf(file).has(anchor) ? undefined : `${file} has no heading #${anchor}`;
}

describe('the documents', () => {
  test('there are some to look at', () => {
    expect(maps).toContain(mapPage);
    expect(maps.length).toBeGreaterThan(10);
    expect(pathsIn(read(mapPage)).length).toBeGreaterThan(100);
  });

  test.each(maps)('%s names only files and folders that exist', (page) => {
    const missing = pathsIn(read(page)).filter((one) => {
      const at = path.join(root, one);
      return !existsSync(at) || (one.endsWith('/') && !statSync(at).isDirectory());
    });
    expect(missing).toEqual([]);
  });

  test.each(linked)('%s links only to pages and headings that exist', (page) => {
    const broken = [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
      if (/^[a-z]+:/.test(target)) return [];
      const [file = '', anchor] = target.split('#');
      const why = brokenLink(file === '' ? page : path.posix.join(path.posix.dirname(page), file), anchor);
      return why === undefined ? [] : [why];
    });
    expect(broken).toEqual([]);
  });
});

describe('the code', () => {
  const code = tracked.filter((file) => file.endsWith('.ts'));

  test('cites only pages and headings that exist', () => {
    const broken = code.flatMap((file) =>
      [...read(file).matchAll(/\bdocs\/(?:adr|design)\/[\w-]+\.md(?:#[\w-]+)?/g)].flatMap(([target]) => {
        const [page = '', anchor] = target.split('#');
        const why = brokenLink(page, anchor);
        return why === undefined ? [] : [`${file}: ${why}`];
      }),
    );
    expect(broken).toEqual([]);
  });

  test('cites no specification that is not in this repository', () => {
    const outside = [
      /\breference\/liqo-/,
      /\bliqo-(networking|offloading|control-plane)\.md/,
      /(?<![\w/])design\.md\b/,
    ];
    const found = code.filter((file) => file !== 'test/architecture/documents.test.ts');
    expect(found.filter((file) => outside.some((pattern) => pattern.test(read(file))))).toEqual([]);
  });
});

interface Walk {
  readonly title: string;
  readonly count: number;
  readonly rooms: readonly string[];
  readonly files: readonly string[];
}

function walksIn(text: string): readonly Walk[] {
  return text.split(/^## /m).flatMap((section) => {
    const [, count, list = ''] = /^Rooms: (\d+) \(([^)]+)\)$/m.exec(section) ?? [];
    if (count === undefined) return [];
    return [
      {
        title: section.split('\n')[0] ?? '',
        count: Number(count),
        rooms: [...list.matchAll(/`([^`]+)`/g)].map(([, room = '']) => room),
        files: [...section.matchAll(/^\d+\. `([^`]+)`: /gm)].map(([, file = '']) => file),
      },
    ];
  });
}

describe('the walks', () => {
  const walks = walksIn(read(mapPage));
  const roomOf = (file: string, among: readonly string[]) => among.find((room) => file.startsWith(`${room}/`));

  test('are those of a pod, a claim, a volume, a request, a packet and a document', () => expect(walks.length).toBe(6));

  test.each(walks)('$title visits the rooms that it names and no other', ({ count, rooms: named, files }) => {
    expect(files.length).toBeGreaterThan(10);
    expect(named.length).toBe(count);
    expect(files.filter((file) => roomOf(file, named) === undefined)).toEqual([]);
    expect(new Set(files.map((file) => roomOf(file, named))).size).toBe(count);
  });
});
