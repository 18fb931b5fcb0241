/** Applies the manifests, waits for what the next ones need, and watches the agent come up. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import { orLater } from '#cli/cluster/retry.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { Step } from '#cli/output/progress.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  csiDrivers,
  customResourceDefinitions,
  daemonSets,
  deployments,
  namespaces,
  pods,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
  services,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, type Pod, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName } from '#shared/domain/network-keys.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { vkOptionsTemplates } from '#shared/schema/liqo/vk-options-template.ts';
import { networkPolicies } from './caller-manifests.ts';
import { createPullWatch, type PullTrouble, pullRemedy } from './image-pull.ts';
import { agentName, controllerSelector } from './manifests.ts';
import { securityContextConstraints } from './platform-manifests.ts';

/** Of everything that is applied. */
export const installedKinds: readonly ResourceType[] = [
  namespaces,
  customResourceDefinitions,
  clusterRoles,
  clusterRoleBindings,
  roleBindings,
  roles,
  serviceAccounts,
  configMaps,
  secrets,
  services,
  deployments,
  daemonSets,
  csiDrivers,
  storageClasses,
  peeringPolicies,
  networkKinds.networks,
  networkKinds.wgGatewayServerTemplates,
  networkKinds.wgGatewayClientTemplates,
];
/** Where `typeOf` looks besides: kinds that only some clusters serve or need. */
const platformKinds: readonly ResourceType[] = [vkOptionsTemplates, securityContextConstraints, networkPolicies];
/** Made once: policies are the administrator's from then on, ranges of Networks never change. */
const madeOnce = new Set(['PeeringPolicy', 'Network', 'VkOptionsTemplate']);

export function typeOf(object: KubeObject): ResourceType {
  const type = [...installedKinds, ...platformKinds].find(({ kind }) => kind === object.kind);
  if (type === undefined) throw new TypeError(`no handle for kind ${object.kind}`);
  return type;
}

export const installManager = 'isthmus-cli';
const lookAgainMs = 250;
/** Of all CRDs of an installation together: with 34 of them, an API server on a machine at a load of 20 took longer than 30 s. */
const establishedWithinMs = 120_000;

/** Brings the cluster to the state of the manifests. */
export async function applyManifests(
  io: CliIo,
  kube: KubeClient,
  manifests: readonly KubeObject[],
  step: Step,
): Promise<void> {
  const crds = manifests.filter(({ kind }) => kind === 'CustomResourceDefinition');
  const others = manifests.filter(({ kind }) => kind !== 'CustomResourceDefinition');
  step.update(`${crds.length} custom resource definitions`);
  await Promise.all(crds.map((crd) => kube.apply(typeOf(crd), crd, installManager)));
  await allEstablished(io, kube, crds);
  for (const object of others) {
    step.update(`${object.kind} ${object.metadata.name}`);
    if (madeOnce.has(object.kind)) await createIfAbsent(io, kube, object);
    else await served(io, object, () => kube.apply(typeOf(object), object, installManager));
  }
  step.update(`${manifests.length} objects`);
}

/** Asked first: an admission webhook that is down must not stand in the way of what exists. */
async function createIfAbsent(io: CliIo, kube: KubeClient, object: KubeObject): Promise<void> {
  if (await kube.get(typeOf(object), refOf(object))) return;
  await served(io, object, async () => {
    try {
      await kube.create(typeOf(object), object);
    } catch (error) {
      if (codeOf(error) !== 'kube_already_exists') throw error;
    }
  });
}

/** An agent that is gone, or not there yet, does not answer. */
export const ourWebhook = /failed calling webhook "[^"]+\.liqo\.io"/;
const goneWithinMs = 15_000;

/** API servers go on asking for a moment after a registration is gone, each for itself. */
export async function pastWebhooks<T>(io: Pick<CliIo, 'clock' | 'signal'>, write: () => Promise<T>): Promise<T> {
  let refusal: Error | undefined;
  const done = await poll(
    io,
    goneWithinMs,
    async () => {
      try {
        return { value: await write() };
      } catch (error) {
        if (codeOf(error) !== 'kube_failed' || !ourWebhook.test((error as Error).message)) throw error;
        refusal = error as Error;
        return undefined;
      }
    },
    () =>
      new AppError(
        'kube_failed',
        `for ${goneWithinMs / 1_000} s the agent's webhooks did not answer: ${refusal?.message}`,
        {
          ...(refusal && { cause: refusal }),
          detail: {
            remedy: `the agent is installed and does not run: see \`kubectl -n ${systemNamespace} describe deployment ${agentName}\`, or take it out with \`isthmus uninstall\` or \`isthmus leave\` and install it again`,
          },
        },
      ),
  );
  return done.value;
}

/** The path of a fresh CRD answers 404, or 429, for a moment after it is established. */
const served = (io: CliIo, object: KubeObject, write: () => Promise<unknown>): Promise<true> =>
  poll(
    io,
    10_000,
    async () => {
      try {
        await pastWebhooks(io, write);
        return true;
      } catch (error) {
        if (codeOf(error) === 'kube_not_found' || codeOf(error) === 'kube_throttled') return undefined;
        throw error;
      }
    },
    () => new AppError('deadline_exceeded', `the API server does not serve ${object.kind} yet`),
  );

/** One poll at a time: a CRD is 10 to 100 kB, and polls of all of them at once keep a busy API server from establishing any. */
async function allEstablished(io: CliIo, kube: KubeClient, crds: readonly KubeObject[]): Promise<void> {
  const deadline = io.clock.now() + establishedWithinMs;
  for (const { metadata } of crds) await established(io, kube, metadata.name, Math.max(0, deadline - io.clock.now()));
}

const established = (io: CliIo, kube: KubeClient, name: string, withinMs: number): Promise<true> =>
  poll(
    io,
    withinMs,
    () =>
      orLater(async () => {
        const crd = await kube.get(customResourceDefinitions, { name });
        const conditions = crd?.status?.conditions ?? [];
        return conditions.some(({ type, status }) => type === 'Established' && status === 'True') ? true : undefined;
      }),
    () =>
      new AppError(
        'deadline_exceeded',
        `the API server has not established the CRD ${name} within ${establishedWithinMs / 1_000} s`,
        { detail: { remedy: 'the API server is slow or busy: run the same command again when it answers sooner' } },
      ),
  );

/** What keeps a pod from running, in the kubelet's words. */
function troubleOf(pod: Pod): string | undefined {
  const waiting = pod.status?.containerStatuses
    ?.map(({ state }) => state?.waiting)
    .find((state) => state !== undefined);
  if (waiting) return [waiting.reason, waiting.message].filter(Boolean).join(': ');
  const unscheduled = pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
  if (unscheduled) return unscheduled.message ?? unscheduled.reason;
  const ended = pod.status?.containerStatuses
    ?.map(({ lastState }) => lastState?.terminated)
    .find((s) => s !== undefined);
  return ended ? `it ended with code ${ended.exitCode}; see its log` : undefined;
}

/** `note` is told at once when a node cannot get the image. */
export async function waitForAgent(
  io: CliIo,
  kube: KubeClient,
  timeoutMs: number,
  step: Step,
  note: (text: string) => void,
): Promise<void> {
  let news = 'no pod yet';
  let pull: PullTrouble | undefined;
  const watchPulls = createPullWatch(note);
  await poll(
    io,
    timeoutMs,
    () =>
      orLater(async () => {
        const agent = await kube.get(deployments, { namespace: systemNamespace, name: agentName });
        const {
          observedGeneration = 0,
          replicas = 0,
          updatedReplicas = 0,
          availableReplicas = 0,
        } = agent?.status ?? {};
        const wanted = agent?.spec?.replicas ?? 1;
        const current = observedGeneration >= (agent?.metadata.generation ?? 0);
        if (current && updatedReplicas === wanted && replicas === wanted && availableReplicas >= wanted) return true;
        const running = await kube.list(pods, controllerSelector);
        pull = watchPulls(running);
        const trouble = running.map(troubleOf).find((text) => text !== undefined);
        const count = `${availableReplicas} of ${wanted} available`;
        news = `${count}${trouble ? `, ${trouble}` : ''}`;
        // The kubelet alternates between two reasons, with an error in full, which has been printed once.
        step.update(pull === undefined ? news : `${count}, waiting for image ${pull.image} on node ${pull.node}`);
        return undefined;
      }),
    () =>
      new AppError('deadline_exceeded', `the agent is not ready: ${news}`, {
        detail: {
          remedy:
            pull === undefined
              ? `look at it with \`kubectl -n ${systemNamespace} describe pods -l ${controllerSelector}\`; is the image on the nodes or in a registry they reach? (--image)`
              : pullRemedy(pull),
        },
      }),
  );
}

/** Resolves with what to tell the user, when some node processes do not run in time: the cluster works without them, its network does not. */
export async function waitForFabric(
  io: CliIo,
  kube: KubeClient,
  timeoutMs: number,
  step: Step,
  note: (text: string) => void,
): Promise<string | undefined> {
  const watchPulls = createPullWatch(note);
  const deadline = io.clock.now() + timeoutMs;
  let seen: string | undefined;
  const look = async (): Promise<true | undefined> => {
    const fabric = await kube.get(daemonSets, { namespace: systemNamespace, name: fabricName });
    const {
      observedGeneration = 0,
      desiredNumberScheduled = 0,
      numberReady = 0,
      updatedNumberScheduled = 0,
    } = fabric?.status ?? {};
    const isCurrent = observedGeneration >= (fabric?.metadata.generation ?? 0);
    seen = `${numberReady} of ${desiredNumberScheduled} nodes`;
    step.update(desiredNumberScheduled === 0 ? 'beside the controllers' : seen);
    if (isCurrent && numberReady >= desiredNumberScheduled && updatedNumberScheduled >= desiredNumberScheduled)
      return true;
    watchPulls(await kube.list(pods, `app.kubernetes.io/name=${fabricName}`));
    return undefined;
  };
  for (;;) {
    if (await orLater(look)) return;
    if (io.clock.now() >= deadline) {
      const found = seen
        ? `the node process runs on ${seen}`
        : 'the API server has not said where the node process runs';
      return `${found}: kubectl -n ${systemNamespace} describe pods -l app.kubernetes.io/name=${fabricName}`;
    }
    await io.clock.sleep(lookAgainMs, io.signal);
  }
}
