/** Brings the agent into a cluster, or to what is asked for now: what `join` and `install` have in common. */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import { during, type Progress } from '#cli/output/progress.ts';
import { agentImage } from '#cli/output/version.ts';
import type { ProfileName } from '#cli/platform/profiles.ts';
import type { PlatformSettings } from '#cli/platform/settings.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import type { NodeProcess } from '#shared/domain/network-keys.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { agentFailure } from './agent-failure.ts';
import { applyManifests, installManager, typeOf, waitForAgent, waitForFabric } from './apply.ts';
import { settleCallers } from './callers.ts';
import { type ClusterState, readCluster } from './cluster-state.ts';
import type { InstallFlags } from './install-flags.ts';
import { makeWay } from './make-way.ts';
import { agentManifests, type NetworkInstallOptions } from './manifests.ts';
import { type MetricsAccess, metricsManifests } from './metrics-manifests.ts';
import { applyMonitors, removeMonitors } from './monitors.ts';
import { markServed, settleNodeProcess } from './node-process.ts';
import { removeStorage } from './remove-storage.ts';
import { type Former, putFormerBack, rememberFormer, removeAdded } from './rollback.ts';
import { makeRoomForClass } from './settle-storage.ts';
import { settleShare } from './share.ts';
import type { StorageInstallOptions } from './storage-manifests.ts';

/** A node may be down: that is no reason not to go on. */
const fabricPatienceMs = 30_000;
/** Its pods may have to be made again. */
const rollbackMs = 120_000;

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
  readonly storage: StorageInstallOptions | undefined;
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
  { clusterId, apiServerUrl, state, network, storage, platform, profile, joinToken, joinStamp }: Installation,
): Planned {
  const nodeProcess = settleNodeProcess(options.nodeProcess, {
    nodes: state.nodes,
    replicas: options.replicas,
    hasNetwork: network !== undefined,
    installed: state.nodeProcess,
  });
  const metrics = options.metrics === false ? undefined : (options.metrics ?? state.metrics);
  const credentials = options.credentials ?? state.credentials;
  const webhookCallers = settleCallers(options.webhookCallers, state.webhookCallers, nodeProcess);
  const manifests = agentManifests({
    clusterId,
    image: options.image ?? state.image ?? agentImage,
    apiServerUrl,
    replicas: options.replicas ?? Math.max(1, Math.min(2, state.schedulableNodes)),
    labels: options.labels,
    nodeProcess,
    webhookCallers,
    ...(credentials !== undefined && { credentials }),
    ...(options.sharePercent !== undefined && { sharePercent: options.sharePercent }),
    ...(storage !== undefined && { storage }),
    ...(metrics !== undefined && { metrics }),
    ...(network !== undefined && { network: forPlatform(network, platform) }),
    ...(platform !== undefined && { platform }),
    ...(profile !== undefined && { profile }),
    ...(joinToken !== undefined && { joinToken }),
    ...(joinStamp !== undefined && { joinStamp }),
  });
  return { manifests, nodeProcess, metrics };
}

/** The same failure, by what the pods of the agent and their logs say. */
async function explained(kube: KubeClient, error: AppError): Promise<AppError> {
  const found = await agentFailure(kube).catch(() => undefined);
  if (found === undefined) return error;
  const { text, remedy } = found;
  return new AppError(error.code, `the agent is not ready: ${text}`, { cause: error, detail: { remedy } });
}

/** Puts back what was there; the refusal to end the command with. */
async function rolledBack(
  io: CliIo,
  progress: Progress,
  kube: KubeClient,
  former: Former,
  failed: AppError,
): Promise<AppError> {
  progress.note(failed.message);
  const { remedy } = failed.detail;
  try {
    await during(progress, `putting back the agent of before, image ${former.image}`, async (step) => {
      await putFormerBack(io, kube, former);
      await waitForAgent(io, kube, rollbackMs, step, progress.note);
      await removeAdded(io, kube, former);
    });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return new AppError(failed.code, `${failed.message}; putting back what was there failed, too: ${error.message}`, {
      cause: error,
      detail: { ...failed.detail, remedy: `repeat the command with --image ${former.image}` },
    });
  }
  return new AppError('rolled_back', `the agent of before is back, image ${former.image}: ${failed.message}`, {
    cause: failed,
    detail: {
      remedy: `${remedy ?? failed.facts.remedy}; then repeat. --no-rollback leaves the new agent in place to look at`,
    },
  });
}

/** Resolves when the agent runs. Fails with `rolled_back` when it does not and the one before is back. */
export async function installAgent(
  io: CliIo,
  progress: Progress,
  kube: KubeClient,
  options: InstallFlags,
  installation: Installation,
): Promise<void> {
  const { state, network, storage, deadline } = installation;
  const { manifests, nodeProcess, metrics } = manifestsFor(options, installation);
  await makeWay(io, progress, kube, deadline);
  const former = options.rollback ? await rememberFormer(kube, manifests) : undefined;
  try {
    await during(progress, 'applying', async (step) => {
      if (nodeProcess === 'shared') for (const node of state.nodes) await markServed(kube, node);
      if (storage !== undefined) await makeRoomForClass(kube, storage);
      await applyManifests(io, kube, manifests, step);
    });
    await during(progress, 'agent', async (step) => {
      try {
        await waitForAgent(io, kube, deadline - io.clock.now(), step, progress.note);
      } catch (error) {
        throw codeOf(error) === 'deadline_exceeded' ? await explained(kube, error as AppError) : error;
      }
    });
  } catch (error) {
    if (former === undefined || !(error instanceof AppError) || io.signal.aborted) throw error;
    throw await rolledBack(io, progress, kube, former, error);
  }
  if (storage === undefined) for (const note of await removeStorage(kube)) progress.note(note);
  if (metrics === undefined && state.metrics !== undefined) await removeMetrics(kube);
  if (metrics !== undefined) {
    const hasNetwork = network !== undefined;
    const note = await during(progress, 'monitors', () => applyMonitors(kube, metrics, hasNetwork, installManager));
    if (note !== undefined) progress.note(note);
  }
  const share = await settleShare(kube, options.sharePercent);
  if (share !== undefined) progress.note(share);
  if (network === undefined) return;
  const patience = Math.min(fabricPatienceMs, deadline - io.clock.now());
  const trouble = await during(progress, 'node processes', (step) =>
    waitForFabric(io, kube, patience, step, progress.note),
  );
  if (trouble !== undefined) progress.note(trouble);
}
