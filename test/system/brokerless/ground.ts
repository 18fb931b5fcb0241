/** Two real clusters without a broker, a pod in each, and what "as before" means for them: objects of every kind. */
import { readFile } from 'node:fs/promises';
import { capturedIo } from '#cli/captured-io.ts';
import { openCluster } from '#cli/cluster/open.ts';
import { createKeyAndRequest, signedByCluster } from '#cli/gitops/client-certificate.ts';
import { kubeconfigText } from '#cli/gitops/kubeconfig.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import type { Target } from '#test/e2e/liqoctl/requests.ts';
import { eventually } from '#test/harness/eventually.ts';
import { NetnsFixture } from '#test/harness/netns.ts';
import { moreThanThereIs, openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { must } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { differences, stateOf } from '../declarative/state.ts';
import { nodePlace, type Place, podPlace } from '../network/test-pods.ts';
import { leftovers } from '../whole-clusters/inventory.ts';
import {
  type ClusterName,
  clusterNames,
  consumer,
  createStage,
  isReady,
  provider,
  type Stage,
} from '../whole-clusters/stage.ts';
import { container, pod } from '../whole-clusters/workloads.ts';
import { type Guide, guideFor } from './guide.ts';

export interface GroundOptions {
  /** Of the test bed. */
  readonly dir: string;
  readonly brokerPort: number;
  /** Whether both join the broker, too. */
  readonly joined?: boolean;
  /** Starts from what an earlier ground left, and leaves it all running. */
  readonly keep?: boolean;
  readonly log?: (line: string) => void;
}

/** Texts by what they are of. */
type State = Readonly<Record<string, string>>;

export interface Ground {
  readonly stage: Stage;
  readonly guide: Guide;
  target(cluster: ClusterName, pollMs?: number): Target;
  readonly netns: NetnsFixture;
  /** Of both clusters unless told. */
  nodes(cluster?: ClusterName): readonly Place[];
  /** Both join the broker. */
  join(): Promise<void>;
  /** Takes what is there now for "as before". */
  remember(): Promise<void>;
  /** Waits until both clusters are as remembered. */
  asBefore(): Promise<void>;
  /** A pod of each cluster calls the pod of the other, once the virtual node is there. */
  crosses(): Promise<void>;
  close(): Promise<void>;
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: { readonly 'certificate-authority-data': string } }[];
}

const other = (cluster: ClusterName): ClusterName => (cluster === consumer ? provider : consumer);
/** The same in both: each sees the other's pods elsewhere. */
const ranges = { podCidr: '10.50.0.0/16', serviceCidr: '10.150.0.0/16' } as const;
const near = 'near';
const port = 8080;
/** The guide leaves name and group of the credentials to the administrator of the provider. */
const user = { commonName: 'operator-of-rome', organization: 'friends' } as const;
/** Kubernetes takes its time to remove a namespace, twice where its content has to go first. */
const unhurried = { withinMs: 60_000, everyMs: 250 } as const;

export async function openGround(options: GroundOptions): Promise<Ground> {
  const { dir, brokerPort, joined = false, keep = false, log = () => undefined } = options;
  const place = { root: repositoryRoot, dir, log };
  if (!keep) await removeProductClusters(place);
  const fixture = await openProductClusters({
    ...place,
    clusters: clusterNames.map((name) => ({ name, ...ranges })),
    brokerPort,
  });
  const install = (name: ClusterName) =>
    fixture.mustIsthmus(
      ...[
        'install',
        '--kubeconfig',
        fixture.cluster(name).kubeconfigPath,
        '--cluster-id',
        name,
        '--image',
        fixture.image,
        ...moreThanThereIs,
      ],
    );
  const join = async (): Promise<void> => {
    await Promise.all(clusterNames.map((name) => fixture.join(name)));
  };
  await (joined ? join() : Promise.all(clusterNames.map(install)));
  const netns = new NetnsFixture();
  let stage = await createStage(fixture);
  const { api } = stage;
  const podPlaces = Object.fromEntries(
    await Promise.all(clusterNames.map(async (name) => [name, await startPod(name)] as const)),
  ) as Record<ClusterName, Place>;
  const guide = guideFor({
    ranges: { rome: await rangesOf('rome'), milan: await rangesOf('milan') },
    serverAddress: fixture.cluster(provider).nodes[0]?.ip ?? '',
    kubeconfig: await credentials(),
    user: user.commonName,
  });
  let before: readonly State[] = [];

  async function startPod(cluster: ClusterName): Promise<Place> {
    const serving = pod(near, near, [container(['serve'])]);
    await stage.apply(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: near } }, serving);
    if (cluster === consumer)
      await stage.apply(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'demo' } });
    return podPlace(netns, await stage.podThat(cluster, [near, near], 'is ready', isReady));
  }

  async function rangesOf(cluster: ClusterName): Promise<{ pod: string; external: string }> {
    const of = async (type: string): Promise<string> =>
      eventually(`${type} of ${cluster}`, async () => {
        const labelSelector = `ipam.liqo.io/network-type=${type}`;
        const [found] = await api(cluster).list(networkKinds.networks, { namespace: systemNamespace, labelSelector });
        return found?.status?.cidr;
      });
    return { pod: await of('pod-cidr'), external: await of('external-cidr') };
  }

  async function credentials(): Promise<string> {
    const { kubeconfigPath, apiServerUrl } = fixture.cluster(provider);
    const io = capturedIo({});
    const kube = await openCluster({ kubeconfig: kubeconfigPath }, io);
    const { privateKey, request } = await createKeyAndRequest(user);
    const certificate = await signedByCluster(io, kube, request, { name: user.commonName });
    const { clusters } = JSON.parse(await readFile(kubeconfigPath, 'utf8')) as Kubeconfig;
    const ca = clusters[0]?.cluster['certificate-authority-data'] ?? '';
    return kubeconfigText({
      cluster: provider,
      user: user.commonName,
      server: apiServerUrl,
      ca: Buffer.from(ca, 'base64').toString(),
      certificate,
      privateKey,
    });
  }

  const states = () => Promise.all(clusterNames.map((cluster) => stateOf(api(cluster))));
  const configurationOf = async (cluster: ClusterName): Promise<Configuration | undefined> =>
    (await api(cluster).list(networkKinds.configurations))[0];

  /** What `cluster` calls an address of the other one's pods. */
  async function viewFrom(cluster: ClusterName, ip: string): Promise<string> {
    const range = (await configurationOf(cluster))?.status?.remote?.cidr.pod?.[0];
    if (range === undefined) throw new Error(`${cluster} has no view of ${other(cluster)} yet`);
    return [...range.split('.').slice(0, 2), ...ip.split('.').slice(2)].join('.');
  }

  return {
    get stage() {
      return stage;
    },
    guide,
    target: (cluster, pollMs) => ({
      api: api(cluster),
      liqoNamespace: systemNamespace,
      ...(pollMs === undefined ? {} : { pollMs }),
    }),
    netns,
    nodes: (only) =>
      clusterNames
        .filter((name) => only === undefined || name === only)
        .flatMap((name) => fixture.cluster(name).nodes.map((node) => nodePlace(netns, fixture.bed.dir, node))),
    join,
    async remember() {
      stage = await createStage(fixture);
      before = await states();
    },
    async asBefore() {
      await eventually(
        'both clusters to be as before',
        async () => {
          const left = await Promise.all(
            clusterNames.map((cluster) => leftovers(api(cluster), stage.baseline[cluster])),
          );
          const changed = differences(await states(), before);
          if (left.flat().length + changed.length > 0) throw new Error([...left.flat(), ...changed].join('\n'));
          return true;
        },
        unhurried,
      );
    },
    async crosses() {
      await eventually('a virtual node', async () => (await api(consumer).list(virtualNodes)).length > 0, unhurried);
      for (const cluster of clusterNames) {
        const [from, to] = [podPlaces[cluster], podPlaces[other(cluster)]];
        await eventually(
          `a pod of ${cluster} calls one of ${other(cluster)}`,
          async () => {
            const url = `http://${await viewFrom(cluster, to.ip)}:${port}/remote`;
            const args = ['-t', String(from.netns.pid), '-n', 'curl', '-sS', '-m', '2', url];
            const seen = (await must('nsenter', args)).stdout;
            const expected = await viewFrom(other(cluster), from.ip);
            if (!seen.includes(expected)) throw new Error(`seen as ${seen} instead of ${expected}`);
            return true;
          },
          unhurried,
        );
      }
    },
    async close() {
      await netns.close();
      if (!keep) await removeProductClusters(place);
    },
  };
}
