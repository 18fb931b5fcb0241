/** What scenarios act with: both clusters as their administrators hold them, and the few steps that several scenarios take. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { namespaces, pods, secrets } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { authenticationKeysSecret, isthmusAnnotation, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { Peering } from '#shared/schema/api/resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { ProductClusters } from '#test/harness/product-clusters.ts';
import { type Ended, run } from '#test/harness/program.ts';
import { inventory } from './inventory.ts';

/** This machine may be shared with others: deadlines tell a hang from slowness and measure nothing. */
export const patience = { withinMs: 60_000, everyMs: 100 } as const;

export type ClusterName = 'rome' | 'milan';
/** Rome lends from milan throughout. */
export const [consumer, provider] = ['rome', 'milan'] as const;
export const clusterNames = [consumer, provider] as const;

export interface Stage {
  readonly world: ProductClusters;
  /** What exists in each cluster when both have joined and nothing is peered. */
  readonly baseline: Readonly<Record<ClusterName, ReadonlySet<string>>>;
  /** As an administrator. */
  api(cluster: ClusterName): KubeApi;
  /** A client with other credentials, from a kubeconfig's text. */
  login(kubeconfig: string): Promise<KubeApi>;
  /** Program and arguments, to run kubectl with a stream. */
  kubectlLine(cluster: ClusterName, ...args: readonly string[]): readonly [string, readonly string[]];
  /** Never rejects for an exit code. */
  kubectl(cluster: ClusterName, args: readonly string[], input?: string): Promise<Ended>;
  /** `kubectl apply`, as often as it takes: a webhook whose agent is being replaced refuses meanwhile. */
  apply(cluster: ClusterName, ...objects: readonly KubeObject[]): Promise<void>;
  createNamespace(name: string): Promise<void>;
  /** Waits until they are gone. */
  deleteNamespaces(cluster: ClusterName, ...names: readonly string[]): Promise<void>;
  offload(namespace: string, ...flags: readonly string[]): Promise<Ended>;
  mustOffload(namespace: string, ...flags: readonly string[]): Promise<void>;
  mustPeer(...flags: readonly string[]): Promise<string>;
  /** As the broker shows it; undefined when there is none. */
  peering(): Promise<Peering | undefined>;
  pod(cluster: ClusterName, namespace: string, name: string): Promise<Pod | undefined>;
  podThat(
    cluster: ClusterName,
    at: readonly [namespace: string, name: string],
    what: string,
    holds: (pod: Pod) => boolean,
  ): Promise<Pod>;
}

export const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
export const isRunning = (pod: Pod): boolean => pod.status?.phase === 'Running';

/** One line that a failed step is told by. */
export const reported = ({ code, stdout, stderr }: Ended): string => `exit ${code}\n${stdout}${stderr}`;

/** An agent that has just started asks the signer of its cluster, and marks its keys with the finding. */
const signerAsked = (api: KubeApi): Promise<boolean> =>
  eventually(
    'the agent to find out which credentials its cluster gives',
    async () => {
      const keys = await api.get(secrets, { namespace: systemNamespace, name: authenticationKeysSecret });
      return keys?.metadata.annotations?.[isthmusAnnotation.credentials] !== undefined;
    },
    patience,
  );

export async function createStage(clusters: ProductClusters): Promise<Stage> {
  const login = async (kubeconfig: string): Promise<KubeApi> =>
    createKubeApi(await connectKubeconfig(kubeconfig), { clock: systemClock, log: silentLog });
  const admin = async (cluster: ClusterName): Promise<KubeApi> =>
    login(await readFile(clusters.cluster(cluster).kubeconfigPath, 'utf8'));
  const apis = { rome: await admin('rome'), milan: await admin('milan') };
  const api = (cluster: ClusterName): KubeApi => apis[cluster];
  await Promise.all(clusterNames.map((name) => signerAsked(apis[name])));

  const kubectlLine: Stage['kubectlLine'] = (cluster, ...args) => [
    path.join(clusters.bed.dir, 'kubectl'),
    [`--kubeconfig=${clusters.cluster(cluster).kubeconfigPath}`, ...args],
  ];
  const kubectl: Stage['kubectl'] = (cluster, args, input) =>
    run(...kubectlLine(cluster, ...args), { timeoutMs: 60_000, ...(input === undefined ? {} : { input }) });

  async function apply(cluster: ClusterName, ...objects: readonly KubeObject[]): Promise<void> {
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    await eventually(
      `${cluster} takes ${objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', ')}`,
      async () => {
        const ended = await kubectl(cluster, ['apply', '-f', '-'], list);
        if (ended.code !== 0) throw new Error(reported(ended));
        return true;
      },
      { ...patience, everyMs: 500 },
    );
  }

  const offload: Stage['offload'] = (namespace, ...flags) =>
    clusters.isthmus(
      'offload',
      'namespace',
      namespace,
      '--kubeconfig',
      clusters.cluster('rome').kubeconfigPath,
      ...flags,
    );
  const pod: Stage['pod'] = (cluster, namespace, name) => api(cluster).get(pods, { namespace, name });

  return {
    world: clusters,
    baseline: { rome: await inventory(apis.rome), milan: await inventory(apis.milan) },
    api,
    login,
    kubectlLine,
    kubectl,
    apply,
    async createNamespace(name) {
      await apply(consumer, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    },
    async deleteNamespaces(cluster, ...names) {
      await Promise.all(names.map((name) => api(cluster).delete(namespaces, { name })));
      await eventually(
        `${names.join(', ')} to be gone from ${cluster}`,
        async () =>
          (await Promise.all(names.map((name) => api(cluster).get(namespaces, { name })))).every((one) => !one),
        patience,
      );
    },
    offload,
    async mustOffload(namespace, ...flags) {
      const ended = await offload(namespace, ...flags);
      if (ended.code !== 0) throw new Error(reported(ended));
    },
    mustPeer: (...flags) =>
      clusters.mustIsthmus(
        ...['peer', consumer, provider, '--cpu', '2', '--memory', '2Gi', '--pods', '20', '--wait', ...flags],
      ),
    async peering() {
      const all = JSON.parse(await clusters.mustIsthmus('get', 'peerings', '-o', 'json')) as
        | Peering[]
        | { items: Peering[] };
      return (Array.isArray(all) ? all : all.items).find((one) => one.consumer === consumer);
    },
    pod,
    podThat(cluster, [namespace, name], what, holds) {
      const look = async (): Promise<Pod> => {
        const found = await pod(cluster, namespace, name);
        if (found && holds(found)) return found;
        throw new Error(JSON.stringify(found?.status ?? 'absent'));
      };
      return eventually(`pod ${namespace}/${name} of ${cluster} ${what}`, look, patience);
    },
  };
}
