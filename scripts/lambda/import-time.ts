/** How long a fresh Node takes to import a module: the part of a cold start that is ours. */
import { pathToFileURL } from 'node:url';
import { runCommand } from '#scripts/setup/run-command.ts';

const program = `
const started = performance.now();
await import(process.argv[1]);
console.log((performance.now() - started).toFixed(1));
process.exit(0);
`;

/** The best of `runs`, in milliseconds: what the machine does besides only ever adds. */
export async function importMs(node: string, file: string, runs = 3): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const printed = await runCommand(node, ['--input-type=module', '-e', program, pathToFileURL(file).href]);
    times.push(Number(printed.trim()));
  }
  return Math.min(...times);
}
