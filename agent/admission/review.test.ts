import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isReview, parseReview, ReviewSchema } from './review.ts';

const asked = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u1',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    operation: 'CREATE',
    name: 'web',
    namespace: 'shop',
    dryRun: false,
    userInfo: { username: 'slice-1', groups: ['milan', 'system:authenticated'], extra: { more: ['x'] } },
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', labels: { app: 'web' }, annotations: null },
      spec: { containers: [] },
    },
    oldObject: null,
  },
};

/** Every place in the document, as paths. */
function paths(value: unknown, at: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, inner]) => paths(inner, [...at, key]))];
}

function replaced(value: unknown, [key, ...rest]: readonly string[], by: unknown): unknown {
  if (key === undefined) return by;
  const copy: Record<string, unknown> = Array.isArray(value)
    ? ([...value] as unknown as Record<string, unknown>)
    : { ...(value as Record<string, unknown>) };
  copy[key] = replaced(copy[key], rest, by);
  if (copy[key] === undefined) delete copy[key];
  return copy;
}

test('whatever the quick look takes for a review the schema takes for the same review, wherever something else stands in it', () => {
  const odd = fc.constantFrom<unknown>(undefined, null, '', 'x', 7, true, [], ['x'], [1], {}, { x: 'y' }, { x: 1 });
  let quick = 0;
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...paths(asked)), odd), { maxLength: 2 }), (changes) => {
      const changed = changes.reduce<unknown>((whole, [path, by]) => {
        try {
          return replaced(whole, path, by);
        } catch {
          return whole;
        }
      }, asked);
      const review: unknown = JSON.parse(JSON.stringify(changed) ?? 'null');
      if (!isReview(review)) return;
      quick++;
      expect(ReviewSchema.parse(review)).toEqual(review);
    }),
    { numRuns: 3_000 },
  );
  expect(quick).toBeGreaterThan(500);
});

test('a question of an API server is taken at the quick look, and one that is none says which field is wrong', () => {
  expect(isReview(asked)).toBe(true);
  expect(parseReview(JSON.stringify(asked))).toMatchObject({ uid: 'u1', name: 'web', user: { name: 'slice-1' } });
  const wrong = { ...asked, request: { ...asked.request, operation: 'TOUCH' } };
  expect(() => parseReview(JSON.stringify(wrong))).toThrow(/^request\.operation: .*send an AdmissionReview/);
});
