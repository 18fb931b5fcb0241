/** Values for a JSON schema of the API document: mostly valid ones, from a seeded source of choice. */

export interface Choice {
  /** A whole number below `n`. */
  below(n: number): number;
  pick<T>(list: readonly T[]): T;
}

/** mulberry32: small, fast, and the same everywhere. */
export function seededChoice(seed: number): Choice {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return { below, pick: (list) => list[below(list.length)] as never };
}

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly format?: string;
}

export interface SchemaSource {
  readonly choice: Choice;
  readonly resolve: (ref: string) => Schema;
  /** A string for the property of that name. */
  readonly text: (name: string, schema: Schema) => string;
}

const maxDepth = 6;

export function fromSchema(schema: Schema, source: SchemaSource, name = '', depth = 0): unknown {
  const { choice, resolve } = source;
  const again = (next: Schema, as = name): unknown => fromSchema(next, source, as, depth + 1);
  if (depth > maxDepth) return null;
  if (schema.$ref !== undefined) return again(resolve(schema.$ref));
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return choice.pick(schema.enum);
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return again(choice.pick(options));
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((part) => again(part)));
  const type = typeof schema.type === 'string' ? schema.type : choice.pick(schema.type ?? ['object']);
  switch (type) {
    case 'object': {
      const known = Object.entries(schema.properties ?? {}).filter(
        ([key]) => schema.required?.includes(key) || choice.below(2) === 0,
      );
      const extra =
        typeof schema.additionalProperties === 'object' && choice.below(2) === 0
          ? [[source.text('key', {}), schema.additionalProperties] as const]
          : [];
      return Object.fromEntries([...known, ...extra].map(([key, value]) => [key, again(value, key)]));
    }
    case 'array':
      return Array.from({ length: (schema.minItems ?? 0) + choice.below(2) }, () => again(schema.items ?? {}));
    case 'integer':
    case 'number': {
      const least = Math.max(schema.minimum ?? 0, -1_000);
      return least + choice.below(Math.min(schema.maximum ?? 1_000, 1_000) - least + 1);
    }
    case 'boolean':
      return choice.below(2) === 0;
    case 'null':
      return null;
    default:
      return source.text(name, schema);
  }
}
