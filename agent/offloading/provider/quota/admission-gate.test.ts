/** Whole histories of admissions: late caches, slow lists, deletions and losses. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { type Amounts, addAmounts } from '#shared/domain/pod-resources.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { createAdmissionGate } from './admission-gate.ts';

const limit = 10n;
/** A watch is at most a second behind: far less than a reservation lives. */
const watchLagMs = 1_000;

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('create' as const), amount: fc.constantFrom(2n, 6n) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('watch' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('answer' as const), which: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), which: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('tick' as const), ms: fc.integer({ min: 1, max: 4_000 }) }) },
);

test('in any history of admissions, late caches, slow lists and deletions, what exists never exceeds the quota', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = new ManualClock();
      const gate = createAdmissionGate(clock);
      const stored = new Map<string, bigint>();
      let cache = new Map<string, bigint>();
      /** Lists that the API server has read and whose answers are on their way. */
      const answers: (() => void)[] = [];
      const admissions: Promise<void>[] = [];
      let next = 0;
      let watchedAt = clock.now();
      const watch = (): void => {
        for (const key of [...stored.keys(), ...cache.keys()]) gate.drop(key);
        cache = new Map(stored);
        watchedAt = clock.now();
      };
      const judge =
        (exist: ReadonlyMap<string, bigint>, amount: bigint) =>
        (reserved: ReadonlyMap<string, Amounts>): Verdict => {
          const others = [...exist].filter(([key]) => !reserved.has(key)).map(([, cpu]) => ({ cpu }));
          const used = [...reserved.values(), ...others].reduce(addAmounts, {});
          return (used.cpu ?? 0n) + amount <= limit ? allow : deny('quota_exceeded', 'full');
        };
      const create = async (key: string, amount: bigint): Promise<void> => {
        const verdict = await gate.admit(
          { key, user: 'u', amounts: { cpu: amount }, dryRun: false },
          (reserved) => judge(cache, amount)(reserved),
          () => {
            const read = new Map(stored);
            return new Promise((resolve) => answers.push(() => resolve(judge(read, amount))));
          },
        );
        if (verdict.allowed) stored.set(key, amount);
      };
      const settled = () => new Promise((resolve) => setImmediate(resolve));
      for (const one of steps) {
        if (one.do === 'watch' || clock.now() - watchedAt > watchLagMs) watch();
        if (one.do === 'tick') clock.advance(one.ms);
        if (one.do === 'delete') stored.delete([...stored.keys()][one.which] ?? '');
        if (one.do === 'create') admissions.push(create(`ns/p${next++}`, one.amount));
        if (one.do === 'answer') for (const answer of answers.splice(one.which, 1)) answer();
        await settled();
        expect([...stored.values()].reduce((sum, amount) => sum + amount, 0n) <= limit).toBe(true);
      }
      for (const answer of answers.splice(0)) answer();
      await Promise.all(admissions);
    }),
    { numRuns: 500 },
  );
});

test('what was admitted and shown while a list was on its way counts beside that list', async () => {
  const gate = createAdmissionGate(new ManualClock());
  const asked = { user: 'u', amounts: { cpu: 6n }, dryRun: false };
  const fits = (reserved: ReadonlyMap<string, Amounts>): Verdict =>
    reserved.size === 0 ? allow : deny('quota_exceeded', 'full');
  let answer: () => void = () => undefined;
  const list = new Promise<typeof fits>((resolve) => {
    answer = () => resolve(fits);
  });
  const first = gate.admit(
    { ...asked, key: 'ns/a' },
    () => deny('quota_exceeded', 'the cache lags'),
    () => list,
  );
  await gate.admit({ ...asked, key: 'ns/b' }, fits, () => list);
  gate.drop('ns/b');
  answer();
  expect((await first).allowed).toBe(false);
});
