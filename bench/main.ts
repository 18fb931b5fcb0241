/** `npm run bench -- NAME [--json] [--runs N] [--clusters N] [--pods N] [--seconds N] [--per-second N] [--tenants N] [--profile]`: measures one thing, prints the figure, keeps the raw result. */
import { parseArgs } from 'node:util';
import { type BenchOptions, type BenchResult, keep, print } from './result.ts';

interface Bench {
  readonly what: string;
  readonly run: (options: BenchOptions) => Promise<BenchResult>;
}

const benches: Readonly<Record<string, Bench>> = {
  peering: {
    what: 'seconds from `peer` with network to virtual node Ready and to the first pod Running, and of `unpeer`; two real clusters',
    run: async (options) => (await import('./peering/peering.ts')).run(options),
  },
  footprint: {
    what: 'MiB resident of all our processes on either side of a link with 0 and with 100 offloaded pods, and millicores while idle; two real clusters',
    run: async (options) => (await import('./footprint/footprint.ts')).run(options),
  },
  burst: {
    what: 'seconds until 1,000 pods are Ready, offloaded and not; CPU, memory and API requests of it; two real clusters, hollow nodes',
    run: async (options) => (await import('./burst/burst.ts')).run(options),
  },
  churn: {
    what: 'seconds until a pod is Ready while 20 a second come and go for 5 minutes, and for 2 minutes without offloading; two real clusters, hollow nodes',
    run: async (options) => (await import('./churn/churn.ts')).run(options),
  },
  'footprint-of-pods': {
    what: 'MiB resident of all our processes with 1,000 offloaded pods (and more: --pods); two real clusters, hollow nodes',
    run: async (options) => (await import('./footprint-of-pods/footprint-of-pods.ts')).run(options),
  },
  cost: {
    what: 'USD of an idle cluster, a peering, 1,000 watch events, by counting the calls of the real handlers',
    run: async (options) => (await import('./cost/cost.ts')).run(options),
  },
  decides: {
    what: 'ms from a report to the bell of the other cluster, and USD of 1,000 reports, when the request path decides and when events do',
    run: async (options) => (await import('./decides/decides.ts')).run(options),
  },
  swarm: {
    what: 'requests a second, P50 and P99, hottest partition, with simulated agents: 10,000 by default',
    run: async (options) => (await import('./swarm/swarm.ts')).run(options),
  },
  api: {
    what: 'P99 of the API at 200 requests a second in local mode, and MiB of the broker with 1,000 connected agents',
    run: async (options) => (await import('./api/api.ts')).run(options),
  },
  fair: {
    what: 'P99 of a polite tenant beside an abusive one that keeps within its limits, as a multiple of its P99 alone; join tokens a second; local mode',
    run: async (options) => (await import('./fair/fair.ts')).run(options),
  },
  waits: {
    what: 'ms to read a page of events after each change, alone and beside 190 long polls of the tenant that wait for something else; local mode',
    run: async (options) => (await import('./waits/waits.ts')).run(options),
  },
  'slow-clients': {
    what: 'descriptors and MiB that a local broker gains a minute under slow and broken clients, for 10 minutes (--seconds)',
    run: async (options) => (await import('./slow-clients/slow-clients.ts')).run(options),
  },
  sweep: {
    what: 'calls of the table of one sweep with 1,000,000 tenants (--tenants), with nothing and with 10,000 peerings due; the same on DynamoDB Local, smaller',
    run: async (options) => (await import('./sweep/sweep.ts')).run(options),
  },
  console: {
    what: 'ms from an input to the picture, with 500 clusters and 2,000 peerings on the map and in the tables of the console; Chromium',
    run: async (options) => (await import('./console/console.ts')).run(options),
  },
  dataplane: {
    what: 'Mbit/s between pods of two clusters, of each leg and from leaf to leaf; ms to program 200 nodes and 5,000 pods',
    run: async (options) => (await import('./dataplane/dataplane.ts')).run(options),
  },
  storage: {
    what: 'MiB/s of the copy of a move of 1 GiB that is written to, beside bare rsync, and seconds of its last pass and comparison; two movers over 1 Gbit/s, and over loopback',
    run: async (options) => (await import('./storage/storage.ts')).run(options),
  },
  claims: {
    what: 'seconds from a claim and its pod to the pod Ready, offloaded and local; MiB of the agents with 1,000 claims; two real clusters with a CSI driver',
    run: async (options) => (await import('./claims/claims.ts')).run(options),
  },
  'cli-start': {
    what: 'seconds from the start to the end of `isthmus version --client` from the packed command line',
    run: async (options) => (await import('./cli-start/cli-start.ts')).run(options),
  },
  'ip-memory': {
    what: 'MiB of heap of 10,000 exposed addresses in each cache and as grants',
    run: async () => (await import('./ip-memory/ip-memory.ts')).run(),
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
    clusters: { type: 'string' },
    pods: { type: 'string' },
    seconds: { type: 'string' },
    'per-second': { type: 'string' },
    tenants: { type: 'string' },
    profile: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
const [name] = positionals;
const bench = name === undefined ? undefined : benches[name];
if (!bench || values.help) {
  const width = Math.max(...Object.keys(benches).map((n) => n.length));
  console.error(
    'usage: npm run bench -- NAME [--runs N] [--clusters N] [--pods N] [--seconds N] [--per-second N] [--tenants N] [--profile] [--json]\n',
  );
  for (const [n, { what }] of Object.entries(benches)) console.error(`  ${n.padEnd(width)}  ${what}`);
  process.exit(values.help ? 0 : 2);
}
const count = (option: 'runs' | 'clusters' | 'pods' | 'seconds' | 'per-second' | 'tenants'): number | undefined => {
  const given = values[option];
  if (given === undefined || /^[1-9]\d*$/.test(given)) return given === undefined ? undefined : Number(given);
  console.error(`--${option} is ${given}, accepted is a whole number above 0`);
  process.exit(2);
};
const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const result = await bench.run({
  root,
  runs: count('runs'),
  clusters: count('clusters'),
  pods: count('pods'),
  seconds: count('seconds'),
  perSecond: count('per-second'),
  tenants: count('tenants'),
  profile: values.profile,
  log: (line) => console.error(line),
});
const file = keep(root, result, new Date());
console.log(values.json ? JSON.stringify(result) : `${print(result)}\n  raw: ${file}`);
process.exit(0);
