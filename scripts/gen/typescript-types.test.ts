import { expect, test } from 'vitest';
import { docComment, type JsonSchema, typeText } from './typescript-types.ts';

const text: JsonSchema = { type: 'string' };
const cases: readonly { schema: JsonSchema; received: string; sent?: string }[] = [
  { schema: text, received: 'string' },
  { schema: { type: 'integer' }, received: 'number' },
  { schema: {}, received: 'unknown' },
  { schema: { const: 'ok' }, received: '"ok"' },
  { schema: { enum: ['a', 2] }, received: '"a" | 2' },
  { schema: { enum: ['true', 'false', ''] }, received: 'boolean' },
  { schema: { anyOf: [{ type: 'integer' }, { type: 'null' }] }, received: 'number | null' },
  { schema: { type: ['string', 'null'] }, received: 'string | null' },
  { schema: { $ref: '#/components/schemas/Cluster' }, received: 'Cluster' },
  { schema: { type: 'array', items: { enum: ['a', 'b'] } }, received: '("a" | "b")[]', sent: 'readonly ("a" | "b")[]' },
  {
    schema: { type: 'object', additionalProperties: text },
    received: 'Record<string, string>',
    sent: 'Readonly<Record<string, string>>',
  },
  {
    schema: { type: 'object', propertyNames: { enum: ['Ready'] }, additionalProperties: text },
    received: 'Partial<Record<"Ready", string>>',
  },
  {
    schema: { type: 'object', properties: { a: text, 'b-c': { ...text, description: 'Why.' } }, required: ['a'] },
    received: '{\na: string;\n/** Why. */\n"b-c"?: string | undefined;\n}',
  },
];

test.each(cases)('$schema is $received', ({ schema, received, sent = received }) => {
  expect([typeText(schema, 'received'), typeText(schema, 'sent')]).toEqual([received, sent]);
});

test('a comment ends where its text ends', () => {
  expect(docComment('all of */*\nand more')).toBe('/** all of * /* and more */\n');
  expect(docComment(undefined)).toBe('');
});
