import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { opaque, Quantity } from './fields.ts';
import { structuralSchema } from './structural.ts';

describe('structuralSchema', () => {
  it('keeps bounds, patterns, defaults, descriptions and extensions', () => {
    const schema = z.object({
      url: z
        .string()
        .regex(/^https?:\/\/x$/)
        .describe('Where.'),
      mtu: z.int().min(1280).max(9000).default(1420),
      mode: z.enum(['a', 'b']).optional(),
      name: z
        .string()
        .min(1)
        .max(63)
        .meta({ 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'fixed' }] }),
    });
    expect(structuralSchema(schema)).toEqual({
      type: 'object',
      required: ['url', 'name'],
      properties: {
        url: { description: 'Where.', type: 'string', pattern: '^https?://x$' },
        mtu: { type: 'integer', format: 'int64', minimum: 1280, maximum: 9000, default: 1420 },
        mode: { type: 'string', enum: ['a', 'b'] },
        name: {
          type: 'string',
          minLength: 1,
          maxLength: 63,
          'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'fixed' }],
        },
      },
    });
  });

  it('names the width of integers instead of their bounds', () => {
    expect(structuralSchema(z.object({ a: z.int(), b: z.int32(), c: z.int32().min(0) })).properties).toEqual({
      a: { type: 'integer', format: 'int64' },
      b: { type: 'integer', format: 'int32' },
      c: { type: 'integer', format: 'int32', minimum: 0 },
    });
  });

  it('writes maps, quantities and opaque objects the way the API server wants them', () => {
    const schema = z.object({
      labels: z.record(z.string(), z.string()),
      cpu: Quantity,
      pod: opaque<object>(),
      loose: z.looseObject({ a: z.string() }).meta({ 'x-kubernetes-preserve-unknown-fields': true }),
    });
    expect(structuralSchema(schema).properties).toEqual({
      labels: { type: 'object', additionalProperties: { type: 'string' } },
      cpu: {
        anyOf: [{ type: 'integer' }, { type: 'string' }],
        pattern: expect.stringContaining('[KMGTPE]i'),
        'x-kubernetes-int-or-string': true,
      },
      pod: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      loose: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        required: ['a'],
        properties: { a: { type: 'string' } },
      },
    });
  });

  it('leaves the pattern of a time to say all: of a string with a format the API server takes a list', () => {
    const { when } = structuralSchema(z.object({ when: z.iso.datetime() })).properties ?? {};
    expect(when).toEqual({ type: 'string', pattern: expect.stringContaining('T(') });
  });

  it.each<[string, z.ZodType, RegExp]>([
    ['a union', z.object({ a: z.object({ b: z.union([z.string(), z.boolean()]) }) }), /^a\.b: anyOf is not structural/],
    [
      'a discriminated union',
      z.object({ a: z.discriminatedUnion('k', [z.object({ k: z.literal('x') }), z.object({ k: z.literal('y') })]) }),
      /^a: (oneOf|anyOf) is not structural/,
    ],
    ['an intersection', z.object({ a: z.string().and(z.enum(['x'])) }), /^a: allOf is not structural/],
    ['a schema with an id', z.object({ a: z.string().meta({ id: 'Name' }) }), /^a: references are not structural/],
    ['a format without a pattern', z.object({ a: z.string().meta({ format: 'date' }) }), /^a: format date without/],
    ['lookaround', z.object({ a: z.string().regex(/^(?!x)/) }), /^a: pattern .* lookaround/],
    ['a back-reference', z.object({ a: z.string().regex(/^(x)\1$/) }), /^a: pattern .* back-reference/],
    ['a value of any type', z.object({ a: z.array(z.unknown()) }), /^a\[\]: has no type/],
    ['a custom check without a type', z.object({ a: z.custom<string>() }), /^a: has no type/],
    ['an object of unknown members', z.object({ a: z.record(z.string(), z.unknown()) }), /^a\.\*: has no type/],
    ['a tuple', z.object({ a: z.tuple([z.string(), z.int()]) }), /^a/],
  ])('refuses %s, naming the place', (_, schema, message) => {
    expect(() => structuralSchema(schema)).toThrow(message);
  });
});
