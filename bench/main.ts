/** `npm run bench -- NAME [--json] [--runs N]`: measures one thing, prints the figure, keeps the raw result. */
import { parseArgs } from 'node:util';
import { type BenchResult, keep, print } from './result.ts';

export interface BenchOptions {
  readonly root: string;
  readonly runs: number | undefined;
  readonly log: (line: string) => void;
}

interface Bench {
  readonly what: string;
  readonly run: (options: BenchOptions) => Promise<BenchResult>;
}

const benches: Readonly<Record<string, Bench>> = {
  peering: {
    what: 'seconds from `peer` to virtual node Ready and to the first pod Running, and of `unpeer`; two real clusters',
    run: async (options) => (await import('./peering/peering.ts')).run(options),
  },
  footprint: {
    what: 'MiB resident of all our processes on either side with 0 and with 100 offloaded pods; two real clusters',
    run: async (options) => (await import('./footprint/footprint.ts')).run(options),
  },
  'cache-memory': {
    what: 'bytes of heap per cached pod; one real API server',
    run: async () => (await import('./cache-memory/cache-memory.ts')).run(),
  },
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    runs: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
const [name] = positionals;
const bench = name === undefined ? undefined : benches[name];
if (!bench || values.help) {
  const width = Math.max(...Object.keys(benches).map((n) => n.length));
  console.error('usage: npm run bench -- NAME [--runs N] [--json]\n');
  for (const [n, { what }] of Object.entries(benches)) console.error(`  ${n.padEnd(width)}  ${what}`);
  process.exit(values.help ? 0 : 2);
}
const runs = values.runs === undefined ? undefined : Number(values.runs);
if (runs !== undefined && !(Number.isInteger(runs) && runs > 0)) {
  console.error(`--runs is ${values.runs}, accepted is a whole number above 0`);
  process.exit(2);
}
const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const result = await bench.run({ root, runs, log: (line) => console.error(line) });
const file = keep(root, result, new Date());
console.log(values.json ? JSON.stringify(result) : `${print(result)}\n  raw: ${file}`);
process.exit(0);
