import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codeOf } from '#shared/errors/app-error.ts';
import { jsonBodyOf, maxDepth } from './json-body.ts';

const json = { 'content-type': 'application/json' };
const read = (body: string | Buffer, headers: Record<string, string> = json, limit = 100_000): unknown =>
  jsonBodyOf(
    typeof body === 'string'
      ? { headers, body, isBase64Encoded: false }
      : { headers, body: body.toString('base64'), isBase64Encoded: true },
    limit,
  );
const refusal = (run: () => unknown): string | undefined => {
  try {
    run();
  } catch (error) {
    return codeOf(error);
  }
  return undefined;
};

test('reads what JSON.parse reads, as text and as bytes', () => {
  const sane = fc.jsonValue({ maxDepth: 10 }).filter((value) => !JSON.stringify(value).includes('__proto__'));
  fc.assert(
    fc.property(sane, fc.constantFrom(undefined, 2), (value, indent) => {
      const text = JSON.stringify(value, undefined, indent);
      expect(read(text)).toEqual(JSON.parse(text));
      expect(read(Buffer.from(text))).toEqual(JSON.parse(text));
    }),
  );
});

test('never fails with anything but a refusal of the request', () => {
  const pieces = fc.array(
    fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', '1', 'e', 'null', '"a"', ' ', '\u0000', 'é', '\\u00'),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        pieces.map((list) => list.join('')),
        fc.string(),
      ),
      (text) => {
        expect([undefined, 'malformed_request']).toContain(refusal(() => read(text)));
      },
    ),
    { numRuns: 3_000 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect([undefined, 'malformed_request']).toContain(refusal(() => read(Buffer.from(bytes))));
    }),
    { numRuns: 1_000 },
  );
});

test('refuses a name that is twice in one object, however it is written, and only that', () => {
  const names = fc.array(fc.constantFrom('a', 'b', 'c', 'aa'), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(names, fc.boolean(), (list, escaped) => {
      const written = list.map((name, i) =>
        escaped && i > 0 ? `"${name.replace('a', '\\u0061')}"` : JSON.stringify(name),
      );
      const text = `[{"a":{"a":"a"},"b":["a","a"]},{${written.map((name) => `${name}:{"a":[1,"a"]}`).join(',')}}]`;
      expect(refusal(() => read(text))).toBe(new Set(list).size === list.length ? undefined : 'malformed_request');
    }),
  );
});

describe('refuses', () => {
  test.each([
    ['nothing', '', 'malformed_request'],
    ['nesting by a megabyte of brackets', '['.repeat(90_000), 'malformed_request'],
    ['nesting of objects', `${'{"a":'.repeat(90)}1${'}'.repeat(90)}`, 'malformed_request'],
    ['a string without an end', '"abc', 'malformed_request'],
    ['a prototype', '{"__proto__":{"role":"admin"}}', 'malformed_request'],
    ['a prototype that is written otherwise', '{"\\u005f_proto__":1}', 'malformed_request'],
    ['two values', '{} {}', 'malformed_request'],
    ['a byte order mark', '\ufeff{}', 'malformed_request'],
    ['more than the limit', JSON.stringify('x'.repeat(100_000)), 'too_large'],
  ])('%s', (_what, body, code) => {
    expect(refusal(() => read(body))).toBe(code);
    expect(refusal(() => read(Buffer.from(body)))).toBe(code);
  });

  test.each([
    [0xff, 0xfe],
    [0x22, 0xc3, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xc0, 0xaf, 0x22],
  ])('bytes that are no UTF-8 (%#)', (...bytes) => {
    expect(refusal(() => read(Buffer.from(bytes)))).toBe('malformed_request');
  });

  test.each([
    undefined,
    '',
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=utf-16',
    'application/jsonx',
    `application/${'a'.repeat(70)}+json`,
  ])('the content type %j', (type) => {
    expect(refusal(() => read('{}', type === undefined ? {} : { 'content-type': type }))).toBe(
      'unsupported_media_type',
    );
  });
});

test.each([
  'application/json',
  'Application/JSON; Charset="UTF-8"',
  'application/problem+json',
  'application/merge-patch+json ;',
])('accepts the content type %j', (type) => {
  expect(read('{}', { 'content-type': type })).toEqual({});
});

test('takes nesting up to the limit', () => {
  const deep = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
  expect(refusal(() => read(deep(maxDepth)))).toBeUndefined();
  expect(refusal(() => read(deep(maxDepth + 1)))).toBe('malformed_request');
});
