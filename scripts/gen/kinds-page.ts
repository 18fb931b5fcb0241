/** docs/reference/kinds.md: every custom kind, its fields, their writers and what the API server enforces. */
import * as z from 'zod';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { objectSchema } from '#shared/schema/crd.ts';
import { Timestamp } from '#shared/schema/definition/fields.ts';
import type { CelRule, KindDefinition } from '#shared/schema/definition/kind.ts';
import { type StructuralSchema, structuralSchema } from '#shared/schema/definition/structural.ts';
import { code, generatedNote, page, table } from './markdown.ts';

interface Field {
  readonly path: string;
  readonly required: boolean;
  readonly schema: StructuralSchema;
}

/** Depth first, in the order of declaration. `[]` stands for an item of a list, `.*` for a value of a map. */
function fieldsUnder(schema: StructuralSchema, path: string): readonly Field[] {
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const at = `${path}.${name}`;
    return [{ path: at, required: schema.required?.includes(name) ?? false, schema: child }, ...fieldsUnder(child, at)];
  });
  const inside = schema.items
    ? fieldsUnder(schema.items, `${path}[]`)
    : schema.additionalProperties
      ? fieldsUnder(schema.additionalProperties, `${path}.*`)
      : [];
  return [...members, ...inside];
}

const times = new Set([z.iso.datetime(), Timestamp].map((schema) => structuralSchema(schema).pattern));

function typeName(schema: StructuralSchema): string {
  if (schema['x-kubernetes-int-or-string']) return 'quantity';
  if (schema.items) return `list of ${typeName(schema.items)}`;
  if (schema.additionalProperties) return `map to ${typeName(schema.additionalProperties)}`;
  if (times.has(schema.pattern)) return 'time';
  return schema.type ?? 'any';
}

/** Limits of a value (of the items, for a list). */
function accepted(schema: StructuralSchema): string {
  const leaf = schema.items ?? schema.additionalProperties ?? schema;
  const limits: string[] = [];
  if (leaf.enum) limits.push(leaf.enum.map((value) => code(String(value))).join(', '));
  if (leaf.pattern && !leaf['x-kubernetes-int-or-string'] && !times.has(leaf.pattern)) limits.push(code(leaf.pattern));
  if (typeof leaf.minLength === 'number')
    limits.push(leaf.minLength === 1 ? 'not empty' : `at least ${leaf.minLength} characters`);
  if (typeof leaf.maxLength === 'number') limits.push(`at most ${leaf.maxLength} characters`);
  if (typeof leaf.minimum === 'number') limits.push(`from ${leaf.minimum}`);
  if (typeof leaf.maximum === 'number') limits.push(`to ${leaf.maximum}`);
  if (typeof schema.minItems === 'number')
    limits.push(schema.minItems === 1 ? 'not empty' : `at least ${schema.minItems} items`);
  if (schema['x-kubernetes-preserve-unknown-fields']) limits.push('as in Kubernetes');
  return limits.join('; ');
}

const rulesOf = (schema: StructuralSchema): readonly CelRule[] =>
  (schema['x-kubernetes-validations'] as readonly CelRule[] | undefined) ?? [];

function presence({ required, schema }: Field): string {
  if (schema.default !== undefined) return `default ${code(JSON.stringify(schema.default))}`;
  return required ? 'required' : '';
}

function fieldTable(schema: StructuralSchema, name: string): string {
  const rows = fieldsUnder(schema, name).map((field) => [
    code(field.path),
    typeName(field.schema),
    presence(field),
    accepted(field.schema),
    field.schema.description ?? '',
  ]);
  return rows.length === 0 ? '' : table(['field', 'type', 'presence', 'accepted', 'meaning'], rows);
}

function section(kind: KindDefinition): string {
  const schema = objectSchema(kind);
  const { spec, status } = schema.properties ?? {};
  const rules = [
    ...rulesOf(schema).map((rule) => rule.message),
    ...fieldsUnder(schema, '').flatMap(({ path, schema: at }) =>
      rulesOf(at).map((rule) => `${code(`${path.slice(1)}${rule.fieldPath ?? ''}`)}: ${rule.message}`),
    ),
  ];
  const names = [kind.plural, kind.singular, ...kind.shortNames].map(code).join(', ');
  return page(
    `## ${kind.kind}`,
    kind.description,
    table(
      ['', ''],
      [
        ['API version', code(apiVersionOf(kind))],
        ['scope', kind.namespaced ? 'namespace' : 'cluster'],
        ['names for kubectl', `${names}; all of a category: ${kind.categories.map(code).join(', ')}`],
        ['object written by', kind.writers.object],
        ['status written by', kind.writers.status ?? 'there is no status'],
      ],
    ),
    spec ? fieldTable(spec, 'spec') : '',
    status ? fieldTable(status, 'status') : '',
    rules.length === 0 ? '' : `Also enforced:\n\n${rules.map((rule) => `- ${rule}`).join('\n')}`,
  ).trimEnd();
}

export function kindsPage(): string {
  return page(
    generatedNote('shared/schema'),
    '# Custom kinds',
    'Fields, their writers, and what the API server enforces. `[]` stands for an item of a list, `.*` for a value of a map; a `quantity` is one of Kubernetes (`2`, `500m`, `4Gi`).',
    table(
      ['kind', 'API version', 'scope', 'what for'],
      allKinds.map((kind) => [
        `[${kind.kind}](#${kind.kind.toLowerCase()})`,
        code(apiVersionOf(kind)),
        kind.namespaced ? 'namespace' : 'cluster',
        kind.description,
      ]),
    ),
    ...allKinds.map(section),
  );
}
