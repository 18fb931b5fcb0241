/** What a start of the command line loads before it knows what to do: loading is most of its time. */
import { build, type Metafile } from 'esbuild';
import { expect, test } from 'vitest';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

/** Packages in what `source` loads at once, without what it imports on demand. */
function packagesAtOnce({ outputs }: Metafile, source: string): string[] {
  const [first] = Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === source) ?? [];
  expect(first, source).toBeDefined();
  const seen = new Set<string>();
  const packages = new Set<string>();
  const visit = (output: string): void => {
    if (seen.has(output)) return;
    seen.add(output);
    for (const { path, kind, external } of outputs[output]?.imports ?? []) {
      if (kind !== 'import-statement') continue;
      if (external !== true) visit(path);
      else if (!/^(node:|process$|buffer$)/.test(path)) packages.add(path);
    }
  };
  visit(first ?? '');
  return [...packages];
}

test('`isthmus --version` and the help of `isthmus status` load the parser of arguments and no other package', async () => {
  const { metafile } = await build({
    absWorkingDir: repositoryRoot,
    entryPoints: ['cli/main.ts'],
    outdir: '.build/start-test',
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'silent',
  });
  for (const source of ['cli/main.ts', 'cli/commands/status.ts', 'cli/commands/version.ts'])
    expect(packagesAtOnce(metafile, source), source).toEqual(['commander']);
});
