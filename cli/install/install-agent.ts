/** Brings the agent into a cluster, or to what is asked for now: what `join` and `install` have in common. */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import { during, type Progress } from '#cli/output/progress.ts';
import { agentImage } from '#cli/output/version.ts';
import type { ProfileName } from '#cli/platform/profiles.ts';
import type { PlatformSettings } from '#cli/platform/settings.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import type { NodeProcess } from '#shared/domain/network-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { applyManifests, installManager, typeOf, waitForAgent, waitForFabric } from './apply.ts';
import { type ClusterState, readCluster } from './cluster-state.ts';
import type { InstallFlags } from './install-flags.ts';
import { makeWay } from './make-way.ts';
import { agentManifests, type NetworkInstallOptions } from './manifests.ts';
import { type MetricsAccess, metricsManifests } from './metrics-manifests.ts';
import { applyMonitors, removeMonitors } from './monitors.ts';
import { markServed, settleNodeProcess } from './node-process.ts';
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
        reason: 'loopback',
        remedy: 'say with --api-server-url https://HOST:PORT how other clusters reach this API server',
      },
    });
  }
  return url.href.replace(/\/+$/, '');
}

/** What is there already; fails when it is another cluster than `name`, unless that is undefined. `remedy` names the command that updates it. */
export async function stateOf(
  kube: KubeClient,
  name: string | undefined,
  remedy: (known: string) => string,
): Promise<ClusterState> {
  const found = await readCluster(kube);
  const { clusterId } = found;
  if (clusterId === undefined || name === undefined || clusterId === name) return found;
  throw new AppError('already_exists', `this cluster has joined as ${clusterId} and cannot be ${name} as well`, {
    detail: { remedy: remedy(clusterId) },
  });
}

export interface Installation {
  readonly clusterId: string;
  readonly apiServerUrl: string;
  readonly state: ClusterState;
  readonly network: NetworkInstallOptions | undefined;
  readonly platform?: PlatformSettings | undefined;
  readonly profile?: ProfileName | undefined;
  readonly joinToken?: string | undefined;
  readonly joinStamp?: string | undefined;
  /** By the clock of `io`. */
  readonly deadline: number;
}

async function removeMetrics(kube: KubeClient): Promise<void> {
  await removeMonitors(kube);
  for (const object of metricsManifests('authenticated', true)) await kube.delete(typeOf(object), refOf(object));
}

/** What was said or is installed goes before what the distribution needs. */
const forPlatform = (network: NetworkInstallOptions, platform: PlatformSettings | undefined): NetworkInstallOptions =>
  network.fullMasquerade === undefined && platform?.fullMasquerade ? { ...network, fullMasquerade: true } : network;

interface Planned {
  readonly manifests: KubeObject[];
  readonly nodeProcess: NodeProcess;
  /** Undefined: served by no process. */
  readonly metrics: MetricsAccess | undefined;
}

/** What would be applied, in the order of applying. */
export function manifestsFor(
  options: InstallFlags,
  { clusterId, apiServerUrl, state, network, platform, profile, joinToken, joinStamp }: Installation,
): Planned {
  const nodeProcess = settleNodeProcess(options.nodeProcess, {
    nodes: state.nodes,
    replicas: options.replicas,
    hasNetwork: network !== undefined,
    installed: state.nodeProcess,
  });
  const metrics = options.metrics === false ? undefined : (options.metrics ?? state.metrics);
  const credentials = options.credentials ?? state.credentials;
  const manifests = agentManifests({
    clusterId,
    image: options.image ?? state.image ?? agentImage,
    apiServerUrl,
    replicas: options.replicas ?? Math.max(1, Math.min(2, state.schedulableNodes)),
    labels: options.labels,
    nodeProcess,
    ...(credentials !== undefined && { credentials }),
    ...(options.sharePercent !== undefined && { sharePercent: options.sharePercent }),
    ...(metrics !== undefined && { metrics }),
    ...(network !== undefined && { network: forPlatform(network, platform) }),
    ...(platform !== undefined && { platform }),
    ...(profile !== undefined && { profile }),
    ...(joinToken !== undefined && { joinToken }),
    ...(joinStamp !== undefined && { joinStamp }),
  });
  return { manifests, nodeProcess, metrics };
}

/** Resolves when the agent runs. */
export async function installAgent(
  io: CliIo,
  progress: Progress,
  kube: KubeClient,
  options: InstallFlags,
  installation: Installation,
): Promise<void> {
  const { state, network, deadline } = installation;
  const { manifests, nodeProcess, metrics } = manifestsFor(options, installation);
  await makeWay(io, progress, kube, deadline);
  await during(progress, 'applying', async (step) => {
    if (nodeProcess === 'shared') for (const node of state.nodes) await markServed(kube, node);
    await applyManifests(io, kube, manifests, step);
    if (metrics === undefined && state.metrics !== undefined) await removeMetrics(kube);
  });
  if (metrics !== undefined) {
    const hasNetwork = network !== undefined;
    const note = await during(progress, 'monitors', () => applyMonitors(kube, metrics, hasNetwork, installManager));
    if (note !== undefined) progress.note(note);
  }
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
