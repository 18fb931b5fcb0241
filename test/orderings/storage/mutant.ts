/** Histories and scripts as they are with one of the planted mistakes in the product's code. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import type { runAdoptions } from './adoptions.ts';
import type { runLateRetain } from './deletions.ts';
import type { runHistory } from './histories.ts';
import type { Edit, Mutation } from './mutations.ts';
import type { runScript } from './scripted.ts';

export interface Mutant {
  readonly runHistory: typeof runHistory;
  readonly runScript: typeof runScript;
  readonly runAdoptions: typeof runAdoptions;
  readonly runLateRetain: typeof runLateRetain;
}

/** The whole file with the mistake in it. */
export function mutated({ file, find, put }: Edit): string {
  const source = readFileSync(path.join(repositoryRoot, file), 'utf8');
  if (source.split(find).length !== 2) throw new Error(`${file} does not have this once: ${find}`);
  return source.replace(find, () => put);
}

export async function loadMutant(mutation: Mutation, name: string): Promise<Mutant> {
  const dir = path.join(repositoryRoot, '.build', `mutants-${process.pid}`);
  mkdirSync(dir, { recursive: true });
  const outfile = path.join(dir, `${name}.mjs`);
  const resolveDir = path.join(repositoryRoot, 'test', 'orderings', 'storage');
  const edits = [mutation, ...(mutation.also ? [mutation.also] : [])];
  const contents = [
    "export { runHistory } from './histories.ts';",
    "export { runScript } from './scripted.ts';",
    "export { runAdoptions } from './adoptions.ts';",
    "export { runLateRetain } from './deletions.ts';",
  ].join('\n');
  await build({
    stdin: { contents, resolveDir, loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    outfile,
    logLevel: 'error',
    plugins: [
      {
        name: 'mutation',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
            const edit = edits.find((one) => file === path.join(repositoryRoot, one.file));
            return edit && { contents: mutated(edit), loader: 'ts' };
          }),
      },
    ],
  });
  try {
    return (await import(/* @vite-ignore */ pathToFileURL(outfile).href)) as Mutant;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
