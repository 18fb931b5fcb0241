/** The OpenAPI document of the last release, as far as clients depend on it: without words and examples. */
import { readFileSync } from 'node:fs';
import type { OpenApi } from './compatibility.ts';

export const releasedPath = 'scripts/openapi/released.json';
export const servedPath = 'functions/api/openapi.json';

export const readDocument = (file: string): OpenApi => JSON.parse(readFileSync(file, 'utf8')) as OpenApi;

const words = new Set([
  'description',
  'summary',
  'title',
  'tags',
  'x-if-match',
  'example',
  'examples',
  'links',
  'servers',
]);

/** Drops words; a property of that name stays. */
export function shapeOf(value: unknown, isNames = false): unknown {
  if (Array.isArray(value)) return value.map((one) => shapeOf(one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) =>
      !isNames && words.has(name) ? [] : [[name, shapeOf(inner, name === 'properties')]],
    ),
  );
}

/** One line for each path, event and component: a difference between two releases can be read. */
export function releasedText(document: OpenApi): string {
  const { paths, webhooks, components, ...rest } = shapeOf(document) as Record<string, Record<string, unknown>>;
  const lines = (of: Record<string, unknown> = {}) =>
    Object.entries(of)
      .map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
      .join(',\n');
  const parts = Object.entries(components ?? {}).map(
    ([name, value]) => `    ${JSON.stringify(name)}: {\n${lines(value as Record<string, unknown>)}\n    }`,
  );
  const head = Object.entries(rest).map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  return `{\n${head.join('\n')}\n  "paths": {\n${lines(paths)}\n  },\n  "webhooks": {\n${lines(webhooks)}\n  },\n  "components": {\n${parts.join(',\n')}\n  }\n}\n`;
}
