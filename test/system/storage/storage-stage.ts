/** Two real clusters with a CSI driver in each, peered, with a namespace over both: its claims, and the pods that write and read them. */
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import {
  openProductClusters,
  type ProductClusters,
  type ProductClustersOptions,
} from '#test/harness/product-clusters.ts';
import type { ClusterRequest } from '#test/testbed/spec.ts';
import {
  type ClusterName,
  clusterNames,
  consumer,
  createStage,
  provider,
  type Stage,
} from '../whole-clusters/stage.ts';
import { container, pod } from '../whole-clusters/workloads.ts';

export const shop = 'shop';
export const shopThere = 'shop-rome';
/** A node of the consumer that is not virtual. */
export const genuine = `${consumer}-1`;

/** What the consumer may have of the provider's storage, unless told; the claims of all tests together are far smaller. */
const granted: Readonly<Record<string, string>> = { 'requests.storage': '4Gi' };

interface StorageStageOptions extends Omit<ProductClustersOptions, 'clusters'> {
  /** What both clusters are asked to be, besides having storage. */
  readonly cluster?: Pick<ClusterRequest, 'restartDelaySeconds' | 'storageGiB'>;
  /** What the consumer asks for besides pods: by name, as in a ResourceQuota. */
  readonly resources?: Readonly<Record<string, string>>;
  /** What the clusters have before Isthmus is installed. */
  readonly before?: (clusters: ProductClusters) => Promise<void>;
}

export async function openStorageStage({
  cluster = {},
  resources = granted,
  before = async () => undefined,
  ...place
}: StorageStageOptions): Promise<Stage> {
  const clusters = await openProductClusters({
    ...place,
    clusters: clusterNames.map((name) => ({ name, storage: true, ...cluster })),
  });
  await before(clusters);
  await Promise.all(clusterNames.map((name) => clusters.join(name)));
  const stage = await createStage(clusters);
  await lendStorage(stage, resources);
  return stage;
}

/** Peers, and offloads the namespace `shop`. */
export async function lendStorage(stage: Stage, resources = granted): Promise<void> {
  await stage.apply(provider, {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'storage' },
    spec: { asProvider: { storageClasses: ['loop', 'loop-now'] } },
  } as KubeObject);
  await stage.mustPeer(...Object.entries(resources).flatMap(([name, value]) => ['--resource', `${name}=${value}`]));
  await stage.createNamespace(shop);
  await stage.mustOffload(shop, '--strategy', 'LocalAndRemote', '--mapping', 'DefaultName');
}

export const claim = (
  name: string,
  annotations: Readonly<Record<string, string>> = {},
  spec: object = {},
): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: shop, name, annotations },
    spec: {
      storageClassName: 'liqo',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '32Mi' } },
      ...spec,
    },
  }) as KubeObject;

const data = [{ name: 'data', mountPath: '/data' }];
const volumesOf = (claimName: string) => [{ name: 'data', persistentVolumeClaim: { claimName } }];
export const on = (node: string) => ({ nodeSelector: { 'kubernetes.io/hostname': node } });

export const writer = (name: string, claimName: string, text: string, more: object = {}): KubeObject =>
  pod(shop, name, [container(['write', '-hold', '/data/notes', text], { volumeMounts: data })], {
    volumes: volumesOf(claimName),
    ...more,
  });
export const reader = (namespace: string, name: string, claimName: string, more: object = {}): KubeObject =>
  pod(namespace, name, [container(['cat', '/data/notes'], { volumeMounts: data })], {
    restartPolicy: 'Never',
    volumes: volumesOf(claimName),
    ...more,
  });

/** What a pod that reads the claim prints, and on which node it was placed: its spec says nothing of that. The pod is gone then. */
export async function readClaim(
  stage: Stage,
  name: string,
  claimName: string,
  more: object = {},
  [cluster, namespace]: readonly [ClusterName, string] = [consumer, shop],
): Promise<{ readonly text: string; readonly node: string | undefined }> {
  await stage.apply(cluster, reader(namespace, name, claimName, more));
  const hasRead = ({ status }: Pod): boolean => status?.phase === 'Succeeded';
  const { spec } = await stage.podThat(cluster, [namespace, name], 'has read', hasRead);
  const { kubectl } = stage.world.cluster(cluster);
  const text = await kubectl('-n', namespace, 'logs', name);
  await kubectl('-n', namespace, 'delete', 'pod', name, '--wait');
  return { text, node: spec?.nodeName };
}

interface Replicated {
  readonly replicas: number;
  /** To which each start of a pod appends a line. */
  readonly file?: string;
  /** What its pods have besides. */
  readonly podSpec?: object;
}

/** Its pods have the label `app`, and a claim `data` each, as `claim` makes them. */
export function statefulSet(name: string, of: Replicated): KubeObject {
  const { replicas, file = '/data/notes', podSpec } = of;
  const labels = { app: name };
  const { spec } = pod(shop, 'unused', [container(['write', '-hold', file, 'a start'], { volumeMounts: data })]);
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { namespace: shop, name },
    spec: {
      replicas,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { ...(spec as object), ...podSpec } },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: (claim('unused') as { spec?: unknown }).spec }],
    },
  } as KubeObject;
}
