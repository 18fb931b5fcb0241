/** `docs/design/behaviours.md` against the tests: each behaviour is proved by tests whose titles begin with its id, or is open for a reason. */
import { describe, expect, test } from 'vitest';
import { behavioursOf, provingFiles, readBehaviours } from '#scripts/gen/behaviours-page.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const behaviours = behavioursOf(readBehaviours(repositoryRoot));
const covered = provingFiles(repositoryRoot);

describe('the offloading checklist', () => {
  test.each(behaviours)('$id is proved by a test, or open for a reason, and not both', ({ id, open }) => {
    const files = covered.get(id) ?? [];
    if (open === undefined) expect(files, `no title begins with ${id}`).not.toEqual([]);
    else expect(files, `${id} is proved now, so its reason has to go: ${open}`).toEqual([]);
    expect(open, `${id} is open without a reason`).not.toBe('');
  });

  test('has every id that a test claims to prove', () => {
    const known = new Set(behaviours.map(({ id }) => id));
    expect([...covered].filter(([id]) => !known.has(id))).toEqual([]);
  });

  test('has each of B001 to B130 once, in order', () => {
    const ids = Array.from({ length: 130 }, (_, i) => `B${String(i + 1).padStart(3, '0')}`);
    expect(behaviours.map(({ id }) => id)).toEqual(ids);
  });
});
