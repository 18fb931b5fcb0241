/** The kit on a real broker: an agent written from the documentation alone passes, and one with a fault does not. */
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { casesOf } from '#test/harness/cases.ts';
import { runKit, type Verdict } from './kit.ts';

const repository = path.resolve(import.meta.dirname, '../..');
const tiny = path.join(repository, 'test/contract/tiny-agent/tiny-agent.mjs');

async function verdicts(file: string): Promise<readonly Verdict[]> {
  const all: Verdict[] = [];
  for await (const verdict of runKit(`"${process.execPath}" "${file}"`)) all.push(verdict);
  return all;
}

test('the agent that is written from the page uses nothing of ours', () => {
  const imports = [...readFileSync(tiny, 'utf8').matchAll(/from '([^']+)'/g)].map(([, name]) => name);
  expect(imports.filter((name) => !name?.startsWith('node:'))).toEqual(['ws']);
});

test('it passes every check of the kit', { timeout: 240_000 }, async () => {
  const all = await verdicts(tiny);
  expect(all.filter(({ failed }) => failed !== undefined)).toEqual([]);
  expect(all).toHaveLength(13);
});

/** What is wrong, the text of the agent that makes it right, what stands there instead, and what the kit says. */
const faults = [
  ['it repeats a request as it was', 'jti: randomUUID()', "jti: 'always-the-same-text'", /request_replayed/],
  [
    'any broker is believed',
    "reject(new Error('no certificate",
    "resolve(''); void (new Error('no certificate",
    /went on|ended with code 0|sent/,
  ],
  ['it does not read Retry-After', 'error.retryAfterMs + Math', 'Math', /came again after/],
  ['it reports no revision', 'revision: appliedRevision }', 'revision: _, appliedRevision = 0 }', /acknowledged/],
  ['it brings no proof by the key before', 'proof.succession =', 'proof.other =', /cluster_key_known/],
] as const;

test.each(casesOf(faults, faults.slice(0, 1)))(
  'an agent fails when %s',
  { timeout: 240_000 },
  async (_what, right, wrong, why) => {
    const text = readFileSync(tiny, 'utf8');
    expect(text).toContain(right);
    // Inside the repository: its packages are found from there.
    await mkdir(path.join(repository, '.build'), { recursive: true });
    const copy = await mkdtemp(path.join(repository, '.build', 'faulty-agent-'));
    try {
      const file = path.join(copy, 'agent.mjs');
      await writeFile(file, text.replace(right, wrong));
      const failed = (await verdicts(file)).filter((one) => one.failed !== undefined);
      expect(failed).toHaveLength(1);
      expect(failed[0]?.failed).toMatch(why);
    } finally {
      await rm(copy, { recursive: true, force: true });
    }
  },
);
