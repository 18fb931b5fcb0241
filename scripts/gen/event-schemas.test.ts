import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { publicTypes, testType, typeName } from '#control/events/cloud-event.ts';
import { eventSchemas } from './event-schemas.ts';

const schemas = eventSchemas();
type JsonSchema = Parameters<typeof z.fromJSONSchema>[0];

test('every type that tenants can get has a published schema and example, and no other', () => {
  expect(Object.keys(schemas).sort()).toEqual([...publicTypes, testType].map(typeName).sort());
});

describe.each(Object.entries(schemas).map(([type, entry]) => ({ type, ...entry })))(
  '$type',
  ({ type, schema, example }) => {
    const check = z.fromJSONSchema(schema as JsonSchema);

    test('is exemplified by what its published schema takes', () => {
      expect(check.safeParse(example).error).toBeUndefined();
    });

    test('is no other type, needs its envelope, and may grow', () => {
      const grown = {
        ...example,
        data: { ...(example as { data: object }).data, addedLater: { by: 'a newer broker' } },
      };
      expect(check.safeParse(grown).success).toBe(true);
      expect(check.safeParse({ ...example, type: `${type}0` }).success).toBe(false);
      expect(check.safeParse({ ...example, id: undefined }).success).toBe(false);
      expect(check.safeParse({ ...example, data: 'text' }).success).toBe(false);
    });
  },
);
