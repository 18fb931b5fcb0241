/** `npm run demo`: two real clusters with the same ranges peer through the broker; a Deployment of one runs on the other and is called from home. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { setUpMachine } from '#scripts/setup/setup.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { codes } from '#shared/errors/codes.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { eventually } from '#test/harness/eventually.ts';
import { openProductClusters, type ProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { openExisting } from './existing.ts';
import { createTimeline, type Timeline } from './timeline.ts';
import { demoManifests, home, namespace, port, type Workload, workloadIn } from './workload.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const usage = `usage: npm run demo                                     two clusters made here, rome and milan
       npm run demo -- --down                            remove them and everything else
       npm run demo -- --kubeconfigs A,B --image REF [--broker-address HOST:PORT] [--workload-image REF]
                                                         two clusters that exist: REF is the agent's image where both can pull it,
                                                         HOST:PORT an address of this machine that pods of both reach,
                                                         unless named the one from which it reaches them; the pods run from
                                                         REF, too, unless --workload-image names what speaks as test/testbed/workload does`;

const { values } = parseArgs({
  options: {
    down: { type: 'boolean', default: false },
    kubeconfigs: { type: 'string' },
    image: { type: 'string' },
    'broker-address': { type: 'string' },
    'workload-image': { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

/** What the demo needs of two clusters, made here or found. */
export type Stage = Pick<ProductClusters, 'mustIsthmus' | 'join'> & {
  readonly consumer: string;
  readonly provider: string;
  readonly workload: Workload;
  /** Without a trailing slash; the console is there. */
  readonly brokerUrl: string;
  /** With a kubectl in it. */
  readonly kubectlFolder: string;
  /** Commands that take everything away again. */
  readonly removal: readonly string[];
  kubeconfigPath(name: string): string;
  kubectl(name: string, ...args: readonly string[]): Promise<string>;
};

/** The same in both: what is at an address of one cluster has another address in the other. */
const ranges = { podCidr: '10.50.0.0/16', serviceCidr: '10.150.0.0/16' } as const;

async function ownStage(timeline: Timeline): Promise<Stage> {
  await timeline.step('looking at this machine', () => setUpMachine({ log: timeline.note }));
  const clusters = await timeline.step(
    'two clusters, rome and milan, and a broker (the first time this builds Kubernetes)',
    () =>
      openProductClusters({
        root,
        clusters: ['rome', 'milan'].map((name) => ({ name, ...ranges })),
        log: timeline.note,
      }),
  );
  return {
    consumer: 'rome',
    provider: 'milan',
    workload: workloadIn(values['workload-image']),
    brokerUrl: clusters.broker.url,
    kubectlFolder: path.join(root, '.testbed'),
    removal: ['npm run demo -- --down'],
    mustIsthmus: clusters.mustIsthmus,
    join: clusters.join,
    kubeconfigPath: (name) => clusters.cluster(name).kubeconfigPath,
    kubectl: (name, ...args) => clusters.cluster(name).kubectl(...args),
  };
}

async function apply({ kubectl, consumer }: Stage, manifest: object): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'isthmus-demo-'));
  const file = path.join(folder, 'manifest.json');
  try {
    await writeFile(file, JSON.stringify(manifest));
    await kubectl(consumer, 'apply', '-f', file);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function play(stage: Stage, timeline: Timeline): Promise<void> {
  const { consumer, provider } = stage;
  await timeline.step(`${consumer} and ${provider} join the broker`, () =>
    Promise.all([stage.join(consumer), stage.join(provider)]),
  );
  await timeline.step(`${consumer} peers with ${provider}`, () =>
    stage.mustIsthmus('peer', consumer, provider, '--cpu', '1', '--memory', '1Gi', '--pods', '20', '--wait'),
  );
  await timeline.step(`namespace ${namespace} is offloaded`, async () => {
    await apply(stage, demoManifests.namespaces());
    const already = await stage.kubectl(consumer, '-n', namespace, 'get', 'namespaceoffloadings', '-o', 'name');
    if (already.trim() !== '') return;
    const target = ['--kubeconfig', stage.kubeconfigPath(consumer), '--pod-offloading-strategy', 'Remote'];
    await stage.mustIsthmus('offload', 'namespace', namespace, ...target);
  });
  const pods = await timeline.step('a Deployment of two pods starts', async () => {
    await apply(stage, demoManifests.workload(stage.workload));
    return eventually('both pods are Running', () => runningPods(stage), { withinMs: 120_000 });
  });
  const line = await timeline.step(`a log line, read through ${consumer} from a pod that runs on ${provider}`, () =>
    eventually('the pod has printed something', async () => {
      const text = await stage.kubectl(consumer, '-n', namespace, 'logs', pods[0] ?? '', '--tail=1');
      return text.trim() === '' ? undefined : text.trim();
    }),
  );

  const call = (url: string) => stage.kubectl(consumer, '-n', home, 'exec', 'caller', '--', ...stage.workload.get(url));
  const address = await podAddress(stage, pods[0] ?? '');
  const answers = await timeline.step(`a pod of ${consumer} calls a pod and a Service on ${provider}`, async () => {
    await stage.kubectl(consumer, '-n', home, 'wait', '--for=condition=Ready', 'pod/caller', '--timeout=60s');
    const urls = [`http://${address}:${port}/`, `http://hello.${namespace}.svc.cluster.local/`];
    return Promise.all(
      urls.map(
        async (url) => [url, await eventually(`${url} answers`, () => call(url), { withinMs: 30_000 })] as const,
      ),
    );
  });

  const show = async (title: string, name: string, ...args: string[]) =>
    console.log(`\n${title}\n${indent(await stage.kubectl(name, ...args))}`);
  await show(`nodes of ${consumer}`, consumer, 'get', 'nodes', '-o', 'wide');
  await show(`pods as ${consumer} sees them`, consumer, '-n', namespace, 'get', 'pods', '-o', 'wide');
  await show(
    `the same pods where they run, on ${provider}`,
    provider,
    '-n',
    `${namespace}-${consumer}`,
    'get',
    'pods',
    '-o',
    'wide',
  );
  console.log(`\na pod of ${consumer} asks, pods on ${provider} answer with their names`);
  for (const [url, answer] of answers) console.log(`  $ get ${url}\n  ${answer.trim()}`);
  console.log(`\nlog line of ${pods[0]}\n  ${line}`);
  console.log(`\n${indent(await stage.mustIsthmus('get', 'peerings'))}`);
  console.log(`\nwhat happened when\n${timeline.table()}`);
  const key = await stage.mustIsthmus('key', 'create', 'demo', '--role', 'admin', '--expires-in', '7d');
  console.log(next(stage));
  console.log(`\nthe console: ${stage.brokerUrl}/\n  log in with ${key.trim()}`);
}

/** Of a pod at the provider, as the consumer reaches it. */
const podAddress = async ({ consumer, kubectl }: Stage, name: string): Promise<string> =>
  (await kubectl(consumer, '-n', namespace, 'get', 'pod', name, '-o', 'jsonpath={.status.podIP}')).trim();

async function runningPods(stage: Stage): Promise<string[] | undefined> {
  const text = await stage.kubectl(
    stage.consumer,
    ...[
      '-n',
      namespace,
      'get',
      'pods',
      '--field-selector=status.phase=Running',
      '-o',
      'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}',
    ],
  );
  const names = text.split('\n').filter(Boolean);
  return names.length >= 2 ? names : undefined;
}

const indent = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n');

const quoted = (word: string): string => (/^[\w./:-]+$/.test(word) ? word : `'${word}'`);

function next({ consumer, provider, kubeconfigPath, kubectlFolder, removal, workload }: Stage): string {
  const here = (file: string) => path.relative(process.cwd(), file);
  const kubeconfig = here(kubeconfigPath(consumer));
  const config = here(path.join(root, '.testbed', 'world', 'config.json'));
  return `
Everything is left running. To try next:
  export ISTHMUS_CONFIG=${config} KUBECONFIG=${kubeconfig} PATH=$PWD/${here(kubectlFolder)}:$PATH
  kubectl -n ${namespace} get pods -o wide --watch
  kubectl -n ${namespace} logs deploy/hello
  kubectl -n ${home} exec caller -- ${workload.get(`http://hello.${namespace}/`).map(quoted).join(' ')}
  npx isthmus describe peering ${consumer} ${provider}
  npx isthmus get events
  npx isthmus unoffload namespace ${namespace} --kubeconfig ${kubeconfig}
  npx isthmus unpeer ${consumer} ${provider} --wait
and to remove it all:
${removal.map((line) => `  ${line}`).join('\n')}`;
}

async function run(): Promise<void> {
  if (values.help) return console.log(usage);
  if (values.down) {
    await removeProductClusters({ root, log: (line) => console.log(line) });
    return console.log('the demo is gone');
  }
  const timeline = createTimeline(
    (line) => console.log(line),
    () => performance.now(),
  );
  const { kubeconfigs, image, 'broker-address': brokerAddress, 'workload-image': workloadImage } = values;
  const stage =
    kubeconfigs === undefined
      ? await ownStage(timeline)
      : await openExisting({ root, kubeconfigs, image, brokerAddress, workloadImage, usage });
  await play(stage, timeline);
}

try {
  await run();
} catch (error) {
  const code = codeOf(error);
  if (code === undefined) throw error;
  console.error(`demo: ${messageOf(error)}`);
  process.exit(codes[code].exit);
}
process.exit(0);
