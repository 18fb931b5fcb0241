/** Plain English, checked where a machine can: a short list of words, and the length of paragraphs. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { commentsOf, fillers, fillersIn, longParagraphs, type Passage, passagesOf, titlesOf } from './words.ts';

const root = path.resolve(import.meta.dirname, '../..');
const tracked = (...patterns: readonly string[]): readonly string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => file !== '' && existsSync(path.join(root, file)));
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

const pages = tracked('docs/*.md', 'examples/*.md', 'README.md', 'CONTRIBUTING.md');
const sources = tracked('*.ts', '*.mjs').filter((file) => !file.startsWith('test/architecture/words.'));
const rooms = [...new Set(sources.map((file) => file.split('/')[0] ?? ''))].filter((room) => !room.includes('.'));

const because = (passages: readonly Passage[], file: string): readonly string[] =>
  passages.flatMap(({ line, text }) =>
    fillersIn(text).map((found) => `${file}:${line}: "${found}": ${fillers[found] ?? 'name what acts'}`),
  );

describe('a sentence names what acts:', () => {
  test.each(rooms)('comments and test titles in %s', (room) => {
    const files = sources.filter((file) => file.startsWith(`${room}/`));
    const found = files.flatMap((file) => {
      const text = read(file);
      return [...because(commentsOf(text), file), ...(file.endsWith('.test.ts') ? because(titlesOf(text), file) : [])];
    });
    expect(found).toEqual([]);
  });

  test.each(pages)('%s', (page) => {
    expect(because(passagesOf(read(page)), page)).toEqual([]);
  });
});

test.each(pages.filter((page) => !/^docs\/(reference\/|events|cli|design\/behaviours)/.test(page)))(
  'a paragraph of %s has at most five wrapped lines',
  (page) => {
    expect(longParagraphs(read(page), 5)).toEqual([]);
  },
);

describe('the check itself', () => {
  test.each([
    ['/** Closes it, whoever asks. */', ['whoever']],
    ["// Nobody's turn.", ['nobody']],
    ["const path = '/who//nobody'; // a literal is no comment", []],
    ['// A user who may not list namespaces.', []],
    ['// As `whoami` and "who" say.', []],
  ])('finds in %s what is a filler', (source, found) => {
    expect(commentsOf(source).flatMap(({ text }) => fillersIn(text))).toEqual(found);
  });

  test('finds titles, also of tables', () => {
    expect(titlesOf("test('one', f);\ntest.each([\n  1,\n])('two', f);\n").map(({ text }) => text)).toEqual([
      'one',
      'two',
    ]);
  });

  test('measures prose and leaves tables alone', () => {
    const long = 'word '.repeat(200);
    expect(longParagraphs(`${long}\n\n| ${long}\n\n- ${long}`, 5)).toHaveLength(1);
  });
});
