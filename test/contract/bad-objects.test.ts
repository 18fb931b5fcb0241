import { expect, test } from 'vitest';
import { badObjects } from './bad-objects.ts';

test.each(badObjects.filter((bad) => bad.alsoZod !== false).map((bad) => [bad.why, bad] as const))(
  'the zod schema refuses %s, as the API server does',
  (_, { kind, spec }) => {
    expect(kind.spec.safeParse(spec).success).toBe(false);
  },
);
