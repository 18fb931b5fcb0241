/** The file of each HTTP function beside its route: what is deployed one by one. `functions/routes.ts` alone says which there are. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { httpFunctions } from '#functions/routes.ts';

export const httpFunctionsPath = 'functions/http-functions.json';

/** Rows in the order of their files, so that two branches that add a route change different lines. */
export function httpFunctionsJson(root = process.env.ISTHMUS_ROOT ?? process.cwd()): string {
  const text = readFileSync(path.join(root, 'functions', 'routes.ts'), 'utf8');
  const files = new Map(
    [...text.matchAll(/import \{ handler as (\w+) \} from '\.\/([^']+)';/g)].map(([, name, file]) => [name, file]),
  );
  const list = /namedFunctions[^=]*= \{([^}]*)\}/.exec(text)?.[1] ?? '';
  const names = list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length !== httpFunctions.length || names.some((name) => !files.has(name))) {
    throw new Error('functions/routes.ts must import each function by name and list it by that name');
  }
  const rows = httpFunctions.map(({ route: { method, path, auth } }, i) => ({
    file: `functions/${files.get(names[i] ?? '')}`,
    method,
    path,
    auth,
  }));
  rows.sort((a, b) => (a.file < b.file ? -1 : 1));
  return `[\n${rows.map((row) => `  ${JSON.stringify(row)}`).join(',\n')}\n]\n`;
}
