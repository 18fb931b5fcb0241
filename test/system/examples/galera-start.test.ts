/** The rule by which replicas of examples/mariadb-galera decide which one begins, for every set of answers that three of them can give. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const members = ['db-0', 'db-1', 'db-2'] as const;
const [one, other] = ['7d6c4913-eac4-11f1-b070-06d8dc977cb1', 'a05b861b-eac4-11f1-9c3f-db232f4f7b3b'];
const answers = [
  '',
  'starting\n',
  'running\n',
  'cut\n',
  'empty\n',
  'damaged\n',
  `at ${one} 9\n`,
  `at ${one} 10\n`,
  `at ${other} 10\n`,
  // A connection that ended in the middle of a line.
  `at ${one} 1`,
] as const;
type Answers = readonly [string, string, string];

const script = readFileSync(path.join(repositoryRoot, 'examples', 'mariadb-galera', 'start.sh'), 'utf8');
const dir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-galera-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** What `decide` of the script prints for each set of answers. */
function decisions(all: readonly Answers[], gone = ''): readonly string[] {
  const decide = /^decide\(\) \{\n[\s\S]*?^\}$/m.exec(script)?.[0];
  if (decide === undefined) throw new Error('start.sh has no function decide');
  writeFileSync(path.join(dir, 'gone'), gone);
  const program = [
    'set -euo pipefail',
    `members='${members.join(' ')}'`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: of bash
    'ask() { printf "%s" "${answer[$1]}"; }',
    decide.replaceAll('/tmp/gone', path.join(dir, 'gone')),
    'declare -A answer',
    ...all.map(
      (given) =>
        `${members.map((member, at) => `answer[${member}]=$'${given[at]?.replace('\n', '\\n')}'`).join(' ')}; decide`,
    ),
  ].join('\n');
  return execFileSync('bash', ['-s'], { input: program, encoding: 'utf8' }).trimEnd().split('\n');
}

const every = answers.flatMap((a) => answers.flatMap((b) => answers.map((c): Answers => [a, b, c])));
const isSilent = (answer: string): boolean => !answer.endsWith('\n') || answer === 'starting\n';

const numberOf = (answer: string): number => Number(/^at \S+ (\d+)\n$/.exec(answer)?.[1] ?? -1);
const historyOf = (answer: string): string | undefined => /^at (\S+) \d+\n$/.exec(answer)?.[1];

describe('the replica of a Galera cluster that begins', () => {
  const decided = decisions(every).map((what, at) => ({ what, given: every[at] ?? ['', '', ''] }));

  test('is joined by all others, for every third answer', () => {
    const heard = decided.filter(({ given }) => given.includes('running\n'));
    expect(heard.filter(({ what }) => !/^join db-\d$/.test(what))).toEqual([]);
  });

  test('does so only when none runs and each of the three has said what it has', () => {
    const wrong = decided.filter(
      ({ given, what }) =>
        what.startsWith('begin') && given.some((answer) => isSilent(answer) || ['running\n', 'cut\n'].includes(answer)),
    );
    expect(wrong).toEqual([]);
  });

  test('has the last transaction of the one history that there is', () => {
    const wrong = decided.filter(({ given, what }) => {
      const leader = members.findIndex((member) => what === `begin ${member}`);
      const histories = new Set(given.flatMap((answer) => historyOf(answer) ?? []));
      return leader >= 0 && (histories.size > 1 || numberOf(given[leader] ?? '') < Math.max(...given.map(numberOf)));
    });
    expect(wrong).toEqual([]);
  });

  test('is an empty one only when all are empty', () => {
    const empty = decided.filter(({ given, what }) =>
      members.some((m, at) => what === `begin ${m}` && given[at] === 'empty\n'),
    );
    expect(empty).toEqual([{ what: 'begin db-0', given: ['empty\n', 'empty\n', 'empty\n'] }]);
  });

  test('is found: a set of answers without a silent one, a damaged one or two histories never waits', () => {
    const waiting = decided.filter(
      ({ given, what }) =>
        what.startsWith('wait') &&
        !given.some((answer) => isSilent(answer) || answer === 'damaged\n') &&
        new Set(given.flatMap((answer) => historyOf(answer) ?? [])).size < 2,
    );
    expect(waiting).toEqual([]);
  });

  test('may be found without one that an administrator has given up, and not without another one', () => {
    const [position = '', silent = ''] = [answers[6], answers[0]];
    expect(
      decisions(
        [
          [position, silent, position],
          [silent, position, position],
        ],
        'db-1\n',
      ),
    ).toEqual(['begin db-0', 'wait for db-0']);
  });
});
