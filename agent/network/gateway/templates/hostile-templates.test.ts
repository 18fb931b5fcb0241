/** Templates of gateways as a hostile tenant may write them: generated programs and generated rubbish over generated values. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AppError } from '#shared/errors/app-error.ts';
import { countOf } from '#test/harness/cases.ts';
import { slowest } from '#test/harness/slowest.ts';
import { firstField, renderText } from './execute.ts';
import { renderTree, type Tree } from './render-tree.ts';

const runs = countOf(100_000, 500);

/** As an API server gives them: no functions, no symbols, and any member name. */
const json = fc.jsonValue({ maxDepth: 3 });
const names = ['Spec', 'Name', 'ports', 'toString', '__proto__', 'constructor', 'length', 'a'];
const nasty = fc.dictionary(fc.constantFrom(...names), fc.oneof(json, fc.array(json, { maxLength: 3 })), {
  noNullPrototype: false,
  maxKeys: 4,
});
const data = fc.record({
  Spec: fc.oneof(nasty, fc.constant({ ports: [1, 2, 3], a: { toString: null } })),
  Name: fc.string({ maxLength: 8 }),
  Namespace: fc.constant('ns'),
  GatewayUID: fc.constant('u'),
  ClusterID: fc.constant('milan'),
  SecretName: fc.constant('s'),
});

const fields = names.map((name) => `.${name}`);
const { expression } = fc.letrec<{ expression: string; call: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(
      ...fields,
      ...fields.map((field) => `.Spec${field}`),
      '.',
      '$',
      '$x',
      '"t"',
      '1',
      '-2',
      'nil',
      'true',
    ),
    tie('call').map((inner) => `(${inner})`),
    fc.tuple(tie('call'), fc.constantFrom(...fields)).map(([inner, field]) => `(${inner})${field}`),
  ),
  call: fc
    .tuple(
      fc.constantFrom('len', 'gt', 'le', 'eq', 'ne', 'and', 'or', 'not', 'index', 'printf'),
      fc.array(tie('expression'), { maxLength: 3 }),
      fc.constantFrom('', ' | len', ' | not', ' | eq 1'),
    )
    .map(([name, args, piped]) => `${[name, ...args].join(' ')}${piped}`),
}));
const { program } = fc.letrec<{ program: string }>((tie) => ({
  program: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('', 'text ', '}}', '{{/* c */}}'),
    expression.map((inner) => `{{ ${inner} }}`),
    fc
      .tuple(fc.constantFrom('if', 'with', 'range', 'range $x :=', 'range $i, $x :='), expression, tie('program'))
      .map(([word, over, body]) => `{{- ${word} ${over} }}${body}{{ end -}}`),
    fc.tuple(expression, tie('program'), tie('program')).map(([over, a, b]) => `{{if ${over}}}${a}{{else}}${b}{{end}}`),
    fc.tuple(tie('program'), tie('program')).map(([a, b]) => a + b),
  ),
}));
const rubbish = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '{{',
        '}}',
        '{{-',
        '-}}',
        '"',
        '`',
        '(',
        ')',
        '|',
        'if ',
        'end',
        'else',
        'range ',
        '$',
        '.',
        ':=',
      ),
      fc.string({ maxLength: 6 }),
    ),
    { maxLength: 20 },
  )
  .map((parts) => parts.join(''));
const source = fc.oneof(program, program, rubbish);

/** Undefined for a refusal that the author of the template reads; anything else thrown is a crash. */
function refusalOr<T>(render: () => T): T | undefined {
  try {
    return render();
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'invalid_input') throw error;
    return undefined;
  }
}

test('a template comes to a text or is refused, also over values with names of JavaScript', () => {
  const watch = slowest('templates');
  fc.assert(
    fc.property(source, data, (text, values) => {
      const rendered = watch(() => refusalOr(() => renderText(text, values)));
      expect(['string', 'undefined']).toContain(typeof rendered);
      expect(rendered ?? '').not.toMatch(/native code|\[object/);
      watch(() => refusalOr(() => firstField(text, values)));
    }),
    { numRuns: runs },
  );
}, 900_000);

test('a text without actions is rendered as it is', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      fc.pre(!text.includes('{{'));
      expect(renderText(text, {})).toBe(text);
    }),
    { numRuns: runs },
  );
}, 900_000);

test('a body of templates keeps its shape and sets no prototype', () => {
  const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 },
      source,
      fc.constantFrom<Tree>(1, true, null),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('labels', '?a', '__proto__', '?__proto__', 'b'), tie('tree'), {
        noNullPrototype: true,
        maxKeys: 3,
      }),
    ),
  }));
  const watch = slowest('bodies of templates');
  fc.assert(
    fc.property(tree, data, (body, values) => {
      const rendered = watch(() => refusalOr(() => renderTree(body, values)));
      if (typeof rendered === 'object' && rendered !== null)
        expect([Object.prototype, Array.prototype]).toContain(Object.getPrototypeOf(rendered));
    }),
    { numRuns: runs },
  );
}, 900_000);

describe('a template that would take too long is refused', () => {
  const ten = { Spec: { ports: Array.from({ length: 10 }, (_, i) => i) } };
  const many = 50_000;
  test.each([
    ['ranges within ranges', '{{range $.Spec.ports}}'.repeat(12) + '{{end}}'.repeat(12)],
    ['text within ranges', `${'{{range $.Spec.ports}}'.repeat(4)}${'x'.repeat(1000)}${'{{end}}'.repeat(4)}`],
    ['parentheses without end', `{{ ${'('.repeat(many)} }}`],
    ['nested calls', `{{ ${'(not '.repeat(many)}1${')'.repeat(many)} }}`],
    ['nested blocks', '{{if 1}}'.repeat(many) + '{{end}}'.repeat(many)],
    ['a long chain of else if', `{{if 0}}${'{{else if 0}}'.repeat(many)}{{end}}`],
    ['a long pipeline', `{{ 1 ${'| not '.repeat(many)} }}`],
  ])('%s', (_what, text) => {
    expect(() => renderText(text, ten)).toThrow(expect.objectContaining({ code: 'invalid_input' }));
    // Either answer is right: it renders nothing.
    refusalOr(() => firstField(text, ten));
  });
});
