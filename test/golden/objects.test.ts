import { describe, expect, it } from 'vitest';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { goldenObjects } from './objects.ts';

/** Go clients send `null` for what is not set; the API server drops it before anybody validates. */
const withoutNulls = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(withoutNulls)
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .filter(([, member]) => member !== null)
            .map(([key, member]) => [key, withoutNulls(member)]),
        )
      : value;

describe('the example objects', () => {
  it.each(goldenObjects().map((golden) => [`${golden.kind.kind} ${golden.object.metadata.name}`, golden] as const))(
    'agree with the zod schemas: %s',
    (_, { kind, object }) => {
      expect(kind.spec.safeParse(withoutNulls(object.spec ?? {})).error).toBeUndefined();
      if (object.status) expect(kind.status?.safeParse(withoutNulls(object.status)).error).toBeUndefined();
    },
  );

  it('cover every kind', () => {
    expect(new Set(goldenObjects().map(({ kind }) => kind))).toEqual(new Set(allKinds));
  });

  it('use every field of every schema that is not opaque', () => {
    const unused = allKinds.flatMap((kind) => {
      const examples = goldenObjects().filter((golden) => golden.kind === kind);
      const shapes = [['spec', kind.spec] as const, ...(kind.status ? [['status', kind.status] as const] : [])];
      return shapes.flatMap(([part, schema]) =>
        Object.keys((schema as unknown as { shape: object }).shape)
          .filter((field) => !examples.some(({ object }) => Object.hasOwn(object[part] ?? {}, field)))
          .map((field) => `${kind.kind} ${part}.${field}`),
      );
    });
    expect(unused).toEqual(['BrokerLink spec.caBundle']);
  });
});
