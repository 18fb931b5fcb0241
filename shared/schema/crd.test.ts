import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { allKinds } from './all-kinds.ts';
import { crdName, customResourceDefinition, objectSchema } from './crd.ts';
import { defineKind } from './definition/kind.ts';
import type { StructuralSchema } from './definition/structural.ts';

/** The schema at a simple JSON path; undefined when the path leads nowhere. */
function schemaAt(root: StructuralSchema, jsonPath: string): StructuralSchema | undefined {
  const steps = jsonPath
    .replaceAll(/\[\?\([^)]*\)\]/g, '[]')
    .split('.')
    .slice(1);
  return steps.reduce<StructuralSchema | undefined>((schema, step) => {
    const [name = '', items] = step.split('[');
    const child = schema?.properties?.[name];
    return items === undefined ? child : child?.items;
  }, root);
}

describe('the kinds', () => {
  it('are 34, with names that no two share', () => {
    expect(allKinds).toHaveLength(34);
    const names = allKinds.flatMap((kind) => [
      `${kind.group}/${kind.plural}`,
      ...(kind.singular === kind.plural ? [] : [`${kind.group}/${kind.singular}`]),
      ...kind.shortNames,
    ]);
    expect(names).toEqual([...new Set(names)]);
  });

  it('of Liqo are in category liqo, ours in category isthmus and cluster-scoped, but for the move of a claim, which stands beside it', () => {
    for (const kind of allKinds) {
      const own = kind.group === 'isthmus.dev';
      expect(kind.categories).toEqual([own ? 'isthmus' : 'liqo']);
      if (own) expect(kind.namespaced).toBe(kind.kind === 'VolumeMove');
    }
  });

  it.each(allKinds.map((kind) => [kind.kind, kind] as const))('%s shows only columns that exist', (_, kind) => {
    const schema = objectSchema(kind);
    for (const { jsonPath, type } of kind.columns.filter((column) => !column.jsonPath.startsWith('.metadata'))) {
      const found = schemaAt(schema, jsonPath);
      expect(found, jsonPath).toBeDefined();
      // The API server prints a list in a column of type string.
      expect(type === 'date' ? 'string' : type, jsonPath).toBe(found?.type === 'array' ? 'string' : found?.type);
    }
  });

  it('describe every field of a spec, or are described by their own fields', () => {
    const undescribed = allKinds.flatMap((kind) =>
      Object.entries(objectSchema(kind).properties?.spec?.properties ?? {})
        .filter(([, schema]) => !kind.group.endsWith('liqo.io') && schema.description === undefined)
        .map(([name]) => `${kind.kind}.${name}`),
    );
    expect(undescribed).toEqual([]);
  });
});

describe('customResourceDefinition', () => {
  it('leaves out the status subresource of a kind without status', () => {
    for (const kind of allKinds) {
      const [version] = customResourceDefinition(kind).spec.versions;
      expect(version?.subresources !== undefined, kind.kind).toBe(kind.status !== undefined);
    }
  });

  it('is named plural.group', () => {
    expect(allKinds.map(crdName)).toContain('namespaceoffloadings.offloading.liqo.io');
  });

  it('refuses a spec that defaults to {} and has required fields', () => {
    const kind = defineKind({
      group: 'example.dev',
      version: 'v1',
      kind: 'Thing',
      plural: 'things',
      namespaced: true,
      categories: [],
      description: '',
      writers: { object: '' },
      columns: [],
      spec: z.object({ size: z.int() }),
      specPresence: 'defaulted',
    });
    expect(() => customResourceDefinition(kind)).toThrow('Thing: spec cannot default to {} while it requires size');
  });
});
