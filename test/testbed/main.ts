/** `npm run testbed -- up|down|status|exec`: the test bed from a terminal. */
import { Command, InvalidArgumentError } from 'commander';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { codes } from '#shared/errors/codes.ts';
import { placeOf } from './bring-up.ts';
import { usualKubernetes } from './build.ts';
import { execInteractively } from './node.ts';
import { runningComponents } from './processes.ts';
import { slotOf } from './slots.ts';
import {
  type ClusterRequest,
  isOtherCni,
  isOtherKubernetes,
  type OtherCni,
  type OtherKubernetes,
  otherCnis,
  otherKubernetes,
} from './spec.ts';
import { type BedOptions, down, status, up } from './testbed.ts';

const usual = await usualKubernetes();
const program = new Command('testbed')
  .description('real Kubernetes clusters on this machine')
  .option('--dir <folder>', 'state folder; one test bed each (default: .testbed of the repository)')
  .showHelpAfterError()
  .enablePositionalOptions();
const where = (): BedOptions => program.opts<{ dir?: string }>();

const list = (text: string): string[] => text.split(',').filter((name) => name !== '');

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('a whole number is accepted');
  return Number(text);
}

function perCluster(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const pairs = list(text).map((pair) => pair.split('=') as [string, string | undefined]);
  const bad = pairs.find(([name, value]) => !name || !value);
  if (bad) throw new InvalidArgumentError('CLUSTER=RANGE is accepted, like rome=10.1.0.0/16');
  return { ...before, ...(Object.fromEntries(pairs) as Record<string, string>) };
}

/** By cluster; under the empty name that of all others. */
type Kinds<K> = Readonly<Record<string, K | undefined>>;

/** Reads `KIND` for all clusters, `rome=KIND` for one. The usual one is accepted, too, and asks for nothing. */
const kindReader =
  <K extends string>(usualOne: string, others: readonly K[], isOther: (text: string) => text is K) =>
  (text: string, before: Kinds<K> = {}): Kinds<K> => {
    const read = list(text).map((one) => (one.includes('=') ? one.split('=') : ['', one]) as [string, string]);
    const bad = read.find(([, kind]) => kind !== usualOne && !isOther(kind));
    if (bad)
      throw new InvalidArgumentError(
        `${bad[1]} is not known here: accepted are ${[...others, usualOne].sort().join(', ')}, for all clusters or as CLUSTER=KIND`,
      );
    return { ...before, ...Object.fromEntries(read.map(([name, kind]) => [name, isOther(kind) ? kind : undefined])) };
  };
const kindOf = <K>(kinds: Kinds<K>, cluster: string): K | undefined => (cluster in kinds ? kinds[cluster] : kinds['']);

interface UpFlags {
  readonly clusters: string[];
  readonly nodes: number;
  readonly storage?: true;
  readonly podCidr?: Readonly<Record<string, string>>;
  readonly serviceCidr?: Readonly<Record<string, string>>;
  readonly kubernetes?: Kinds<OtherKubernetes>;
  readonly cni?: Kinds<OtherCni>;
}

function requests(flags: UpFlags): ClusterRequest[] {
  const { podCidr: pods = {}, serviceCidr: services = {}, kubernetes: versions = {}, cni: cnis = {} } = flags;
  const named = [pods, services, versions, cnis].flatMap((one) => Object.keys(one)).filter((name) => name !== '');
  const stray = named.find((name) => !flags.clusters.includes(name));
  if (stray !== undefined)
    throw new AppError(
      'invalid_input',
      `a range, version or CNI is given for ${stray}, which is not in --clusters ${flags.clusters.join(',')}`,
    );
  return flags.clusters.map((name) => {
    const [podCidr, serviceCidr] = [pods[name], services[name]];
    const [kubernetes, cni] = [kindOf(versions, name), kindOf(cnis, name)];
    return {
      name,
      nodes: flags.nodes,
      ...(podCidr ? { podCidr } : {}),
      ...(serviceCidr ? { serviceCidr } : {}),
      ...(flags.storage ? { storage: true } : {}),
      ...(kubernetes ? { kubernetes } : {}),
      ...(cni ? { cni } : {}),
    };
  });
}

async function printStatus(): Promise<void> {
  const { bed, clusters } = await status(where());
  if (clusters.length === 0) return console.log('the test bed is down');
  for (const { spec, health } of clusters) {
    const missing =
      health.state === 'lame'
        ? `: ${health.missing.map(({ node, component }) => `${component} of ${node}`).join(', ')} not running`
        : '';
    console.log(`${spec.name}  ${health.state}${health.state === 'broken' ? `: ${health.why}` : missing}`);
    console.log(
      `  pods ${spec.podCidr}${spec.cni === undefined ? '' : ` by ${spec.cni}`}  services ${spec.serviceCidr}  nodes ${spec.nodes.map(({ name, ip }) => `${name} (${ip})`).join(', ')}`,
    );
    console.log(`  ${bed.dir}/kubectl --kubeconfig ${bed.cluster(spec.name).kubeconfigPath} get nodes`);
  }
  console.log(`this host is ${bed.hostAddress} for all of them`);
}

async function execute(target: string, argv: readonly string[]): Promise<number> {
  const [cluster = '', wanted = '1'] = target.split('/');
  const { bed, clusters } = await status(where());
  bed.cluster(cluster); // says which ones there are
  const spec = clusters.find((each) => each.spec.name === cluster)?.spec;
  const node = spec?.nodes.find(({ name }, i) => name === wanted || String(i + 1) === wanted);
  if (!spec || !node)
    throw new AppError(
      'not_found',
      `${cluster} has no node ${wanted}; it has ${spec?.nodes.map(({ name }) => name).join(', ')}`,
    );
  const slot = slotOf(bed.dir) ?? 0;
  const pid = runningComponents(slot).get(`${node.name}/init`);
  if (pid === undefined)
    throw new AppError('not_found', `node ${node.name} does not run: bring it up with \`up --clusters ${cluster}\``);
  return await execInteractively(placeOf({ slot, dir: bed.dir }, spec, node.name), pid, argv);
}

program
  .command('up')
  .description('bring clusters up, beside those that run; mends what has died')
  .requiredOption('--clusters <names>', 'comma-separated', list)
  .option('--nodes <count>', 'nodes per cluster, 1 to 3', wholeNumber, 1)
  .option('--storage', 'with volumes: StorageClasses loop (the default) and loop-now')
  .option('--pod-cidr <cluster=range>', 'pod range of a cluster, repeatable', perCluster)
  .option('--service-cidr <cluster=range>', 'service range of a cluster, repeatable', perCluster)
  .option(
    '--kubernetes <version>',
    `of all clusters, or CLUSTER=VERSION, repeatable (default: ${usual})`,
    kindReader(usual, otherKubernetes, isOtherKubernetes),
  )
  .option(
    '--cni <name>',
    `${otherCnis.join(', ')} or bridge: of all clusters, or CLUSTER=NAME, repeatable (default: bridge)`,
    kindReader('bridge', otherCnis, isOtherCni),
  )
  .action(async (flags: UpFlags) => {
    await up({ ...where(), clusters: requests(flags), log: (line) => console.log(line) });
    await printStatus();
  });
program
  .command('down')
  .description('remove clusters, all of them unless told which')
  .option('--clusters <names>', 'comma-separated', list)
  .action(async (flags: { readonly clusters?: string[] }) => {
    await down({ ...where(), log: (line) => console.log(line), ...flags });
  });
program.command('status').description('what stands').action(printStatus);
program
  .command('exec')
  .description('run a command in the namespaces of a node')
  .argument('<cluster[/node]>', 'the first node unless told; by name or number')
  .argument('<command...>')
  .passThroughOptions()
  .action(async (target: string, argv: string[]) => {
    process.exitCode = await execute(target, argv[0] === '--' ? argv.slice(1) : argv);
  });

try {
  await program.parseAsync();
} catch (error) {
  const code = codeOf(error);
  if (code === undefined || !(error instanceof Error)) throw error;
  console.error(`testbed: ${error.message}`);
  process.exitCode = codes[code].exit;
}
