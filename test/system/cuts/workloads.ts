/** What runs at the provider when it is cut off: one of each kind of owner that Kubernetes treats differently. */
import { deployments, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { eventually } from '#test/harness/eventually.ts';
import { consumer, isReady, provider, type Stage } from '../whole-clusters/stage.ts';
import { container, deployment } from '../whole-clusters/workloads.ts';

type Loose = KubeObject & { readonly spec?: unknown };

/** Must run in one place at a time, for as long as they live: each member of the set, and the Job that waits for an end before it begins again. */
export const onlyOnce = ['pod db-0', 'pod db-1', 'job once'] as const;
/** Ends by itself after so long: during the cut, unseen by the consumer. */
const briefSeconds = 25;
export const brief = 'job brief';
const setReplicas = 2;
const webReplicas = 3;

function template(name: string, args: readonly string[], more: object = {}): object {
  return {
    metadata: { labels: { app: name } },
    spec: { terminationGracePeriodSeconds: 5, containers: [container(args)], ...more },
  };
}

const job = (namespace: string, name: string, args: readonly string[]): Loose => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { namespace, name },
  spec: { podReplacementPolicy: 'Failed', template: template(name, args, { restartPolicy: 'Never' }) },
});

const lasting = (namespace: string): Loose[] => [
  deployment(namespace, 'web', webReplicas, [container(['serve'])]),
  {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { namespace, name: 'db' },
    spec: {
      serviceName: 'db',
      replicas: setReplicas,
      podManagementPolicy: 'Parallel',
      selector: { matchLabels: { app: 'db' } },
      template: template('db', ['serve']),
    },
  },
  job(namespace, 'once', ['sleep']),
];
const podCount = webReplicas + setReplicas + 2;
const unhurried = { withinMs: 120_000, everyMs: 250 } as const;

/** They may run at home, too, and would after an eviction; only for this moment home is closed, so that they begin abroad. */
export async function startWorkloads(on: Stage, namespace: string): Promise<void> {
  const [home] = on.world.cluster(consumer).nodes;
  const node = home?.name ?? '';
  await on.kubectl(consumer, ['cordon', node]);
  try {
    await on.apply(consumer, ...lasting(namespace));
    await allReady(on, namespace, podCount - 1);
    // Last, so that it lives until the cut however long the others took to start.
    await on.apply(consumer, job(namespace, 'brief', ['exit', '0', '--after', `${briefSeconds}s`]));
    await allReady(on, namespace, podCount);
  } finally {
    await on.kubectl(consumer, ['uncordon', node]);
  }
}

const allReady = (on: Stage, namespace: string, count: number): Promise<true> =>
  eventually(
    `${count} pods are ready at ${provider}`,
    async () => {
      const all = await on.api(consumer).list(pods, { namespace });
      if (all.length === count && all.every((pod) => pod.spec?.nodeName === provider && isReady(pod))) return true;
      throw new Error(all.map(line).join('; '));
    },
    unhurried,
  );

const line = ({ metadata, spec, status }: Pod): string =>
  `${metadata.name} ${status?.phase} on ${spec?.nodeName ?? 'no node'}${metadata.deletionTimestamp ? ', terminating' : ''}`;

/** Wherever they run by now: everything that shall serve serves, and what has ended has ended well. */
export async function whenWell(on: Stage, namespace: string): Promise<void> {
  const api = on.api(consumer);
  await eventually(
    'every workload is well again',
    async () => {
      const all = await api.list(pods, { namespace });
      const output = all.map(line).join('; ');
      const of = (label: string, name: string): Pod[] =>
        all.filter(({ metadata }) => metadata.labels?.[label] === name);
      const ofJobs = ['brief', 'once'].flatMap((name) => of('batch.kubernetes.io/job-name', name));
      const finished = ofJobs.filter(({ status }) => status?.phase === 'Succeeded');
      const lasting = all.filter((pod) => !finished.includes(pod));
      const web = await api.get(deployments, { namespace, name: 'web' });
      const succeeded = await succeededJobs(on, namespace);
      // Told to end by an eviction, `once` ends well: then Kubernetes counts it as done, as it would at home.
      const jobs = ofJobs.filter((pod) => lasting.includes(pod)).length + succeeded.length;
      const right =
        (web?.status as { readyReplicas?: number } | undefined)?.readyReplicas === webReplicas &&
        of('app', 'db').length === setReplicas &&
        jobs === 2 &&
        succeeded.includes('brief') &&
        lasting.every((pod) => isReady(pod) && !pod.metadata.deletionTimestamp);
      if (right) return true;
      throw new Error(`${output}; Jobs that succeeded: ${succeeded.join(', ') || 'none'}`);
    },
    { ...unhurried, withinMs: 180_000 },
  );
}

async function succeededJobs(on: Stage, namespace: string): Promise<string[]> {
  const each = '-o=jsonpath={range .items[?(@.status.succeeded==1)]}{.metadata.name}{" "}{end}';
  const { stdout } = await on.kubectl(consumer, ['-n', namespace, 'get', 'jobs', each]);
  return stdout.split(' ').filter(Boolean);
}
