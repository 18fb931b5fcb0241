/**
 * zod ties every schema to its writers of JSON Schema, 18 KB that no cloud function calls: what the API serves is written by `npm run gen`.
 * The same names without an implementation; a call throws.
 */
export const jsonSchemaModules = /[\\/]zod[\\/]v4[\\/]core[\\/](to-json-schema|json-schema-processors)\.js$/;

/** `source`: of such a module. Its `create…Method` functions run when a schema is made, and give what a caller would call. */
export function withoutBodies(source: string): string {
  const named = [...source.matchAll(/^export (?:const|function) (\w+)/gm)].map(([, name = '']) => name);
  const renamed = [...source.matchAll(/^export \{ \w+ as (\w+) \}/gm)].map(([, name = '']) => name);
  return [
    'const never = () => { throw new Error("a cloud function has no JSON Schema writer; `npm run gen` has"); };',
    'const method = () => never;',
    ...named.map((name) => `export const ${name} = ${name.startsWith('create') ? 'method' : 'never'};`),
    ...renamed.map((name) => `export { never as ${name} };`),
  ].join('\n');
}
