/** Brings the agent into a cluster, or to what is asked for now: what `join` and `install` have in common. */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import { during, type Progress } from '#cli/output/progress.ts';
import { agentImage } from '#cli/output/version.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { applyManifests, typeOf, waitForAgent, waitForFabric } from './apply.ts';
import { type ClusterState, readCluster } from './cluster-state.ts';
import type { InstallFlags } from './install-flags.ts';
import { makeWay } from './make-way.ts';
import { agentManifests, type NetworkInstallOptions } from './manifests.ts';
import { metricsManifests } from './metrics-manifests.ts';
import { markServed, settleNodeProcess } from './node-process.ts';
import { settleNetwork } from './read-ranges.ts';
import { makeRoomForClass, settleStorage } from './settle-storage.ts';
import { settleShare } from './share.ts';

/** A node may be down: that is no reason not to go on. */
const fabricPatienceMs = 30_000;

const loopback = /^(localhost|127\.|\[::1\])/;

/** How peers reach the API server: what was said, else what the kubeconfig names. Fails with `invalid_input` for what peers cannot use. */
export function peerUrl(requested: string | undefined, server: string): string {
  const text = requested ?? server;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:') {
    throw new AppError(
      'invalid_input',
      `the API server URL is ${JSON.stringify(text)}, accepted is https://HOST:PORT`,
      {
        detail: { field: 'api-server-url', value: text },
      },
    );
  }
  if (requested === undefined && loopback.test(url.host)) {
    throw new AppError('invalid_input', `the kubeconfig names the API server ${server}, which peers cannot reach`, {
      detail: {
        field: 'api-server-url',
        value: server,
        remedy: 'say with --api-server-url https://HOST:PORT how other clusters reach this API server',
      },
    });
  }
  return url.href.replace(/\/+$/, '');
}

/** What is there already; fails when it is another cluster than `name`. `command` is the one that updates it. */
export const lookAt = (progress: Progress, kube: KubeClient, name: string, remedy: (known: string) => string) =>
  during(progress, 'looking at the cluster', async (step): Promise<ClusterState> => {
    step.update(await kube.version());
    const found = await readCluster(kube);
    const { clusterId } = found;
    if (clusterId === undefined || clusterId === name) return found;
    throw new AppError('already_exists', `this cluster has joined as ${clusterId} and cannot be ${name} as well`, {
      detail: { remedy: remedy(clusterId) },
    });
  });

export const settleRangesOf = async (
  progress: Progress,
  kube: KubeClient,
  name: string,
  options: InstallFlags,
): Promise<NetworkInstallOptions | undefined> =>
  options.network
    ? during(progress, 'ranges', async (step) => {
        const settled = await settleNetwork(kube, name, options);
        step.update(settled.notes.join('; '));
        return settled;
      })
    : undefined;

export interface Installation {
  readonly clusterId: string;
  readonly apiServerUrl: string;
  readonly state: ClusterState;
  readonly network: NetworkInstallOptions | undefined;
  readonly joinToken?: string | undefined;
  readonly joinStamp?: string | undefined;
  /** By the clock of `io`. */
  readonly deadline: number;
}

async function removeMetrics(kube: KubeClient): Promise<void> {
  for (const object of metricsManifests('authenticated', true)) await kube.delete(typeOf(object), refOf(object));
}

/** Resolves when the agent runs. */
export async function installAgent(
  io: CliIo,
  progress: Progress,
  kube: KubeClient,
  options: InstallFlags,
  { clusterId, apiServerUrl, state, network, joinToken, joinStamp, deadline }: Installation,
): Promise<void> {
  const nodeProcess = settleNodeProcess(options.nodeProcess, {
    nodes: state.nodes,
    replicas: options.replicas,
    hasNetwork: network !== undefined,
    installed: state.nodeProcess,
  });
  const storage = await settleStorage(kube, options);
  const metrics = options.metrics === false ? undefined : (options.metrics ?? state.metrics);
  const manifests = agentManifests({
    clusterId,
    image: options.image ?? state.image ?? agentImage,
    apiServerUrl,
    replicas: options.replicas ?? Math.max(1, Math.min(2, state.schedulableNodes)),
    labels: options.labels,
    nodeProcess,
    ...(options.sharePercent !== undefined && { sharePercent: options.sharePercent }),
    ...(network !== undefined && { network }),
    ...(storage !== undefined && { storage }),
    ...(metrics !== undefined && { metrics }),
    ...(joinToken !== undefined && { joinToken }),
    ...(joinStamp !== undefined && { joinStamp }),
  });
  await makeWay(io, progress, kube, deadline);
  await during(progress, 'applying', async (step) => {
    if (nodeProcess === 'shared') for (const node of state.nodes) await markServed(kube, node);
    if (storage !== undefined) await makeRoomForClass(kube, storage);
    await applyManifests(io, kube, manifests, step);
    if (metrics === undefined && state.metrics !== undefined) await removeMetrics(kube);
  });
  const share = await settleShare(kube, options.sharePercent);
  if (share !== undefined) progress.note(share);
  await during(progress, 'agent', (step) => waitForAgent(io, kube, deadline - io.clock.now(), step, progress.note));
  if (network === undefined) return;
  const patience = Math.min(fabricPatienceMs, deadline - io.clock.now());
  const trouble = await during(progress, 'node processes', (step) =>
    waitForFabric(io, kube, patience, step, progress.note),
  );
  if (trouble !== undefined) progress.note(trouble);
}
