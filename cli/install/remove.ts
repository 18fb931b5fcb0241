/**
 * Takes Isthmus out of a cluster. After each write the cluster works: pods of every namespace can be made, with or without the agent. Running it
 * again goes on where it was interrupted; what is absent already is fine. The name of the cluster, in the system namespace, goes last.
 */
import type { KubeClient } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import type { CliIo } from '#cli/output/io.ts';
import { during, type Progress, type Step } from '#cli/output/progress.ts';
import {
  customResourceDefinitions,
  namespaces,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  secrets,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, type Pod, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { finalizer, isthmusLabel, label, offloadingGate, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { nodeProcessLabel } from '#shared/domain/network-keys.ts';
import {
  moveFinalizer,
  moveGate,
  storageAnnotation,
  storageNamespace,
  volumeFinalizer,
} from '#shared/domain/storage-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { pastWebhooks } from './apply.ts';
import { orUndefined, readCluster } from './cluster-state.ts';
import { hasVolumes, releaseGuestData } from './guest-claims.ts';
import { isKept, nameOf, type OwnObject, ownObjects } from './own-objects.ts';
import { agentRuns, stopAgent } from './stop-agent.ts';
import { unregister } from './webhooks.ts';

export interface Removal {
  /** Also tenant namespaces and the CRDs, and with them every object of those kinds. */
  readonly purge: boolean;
  readonly timeoutMs: number;
}

/** Resolves with what is kept. Fails with `in_use` beside Liqo, and with `deadline_exceeded` that names what does not go and why. */
export async function removeIsthmus(
  io: CliIo,
  progress: Progress,
  kube: KubeClient,
  { purge, timeoutMs }: Removal,
): Promise<OwnObject[]> {
  await readCluster(kube);
  const deadline = io.clock.now() + timeoutMs;
  await during(progress, 'webhooks', () => unregister(io, kube));
  if (purge && (await agentRuns(kube)))
    await during(progress, 'tenant namespaces', (step) => removeTenantNamespaces(io, kube, deadline, step));
  await during(progress, 'stopping the agent', (step) => stopAgent(io, kube, deadline, step));
  // An agent that had the right from elsewhere, or that was starting, may have registered meanwhile: its configurations are objects, too.
  return during(progress, 'removing its objects', async (step) => {
    // Before anything goes: a repetition finds nothing to do when all else is gone.
    await giveToHelm(kube);
    return removeAll(io, kube, { purge, deadline }, step);
  });
}

/**
 * A release of the chart makes the namespace of real claims, and Helm refuses one that is there already unless its marks name that release.
 * Those of the release that docs/chart.md makes, unless it is a release's already.
 */
async function giveToHelm(kube: KubeClient): Promise<void> {
  const found = await kube.get<KubeObject>(namespaces, { name: storageNamespace });
  if (found === undefined || found.metadata.annotations?.[helmRelease.name] !== undefined) return;
  const { uid, resourceVersion } = found.metadata;
  const annotations = { [helmRelease.name]: 'isthmus', [helmRelease.namespace]: 'kube-system' };
  const labels = { 'app.kubernetes.io/managed-by': 'Helm' };
  await orUndefined(
    kube.mergePatch(namespaces, refOf(found), { metadata: { uid, resourceVersion, labels, annotations } }),
    'kube_conflict',
  );
}

const helmRelease = { name: 'meta.helm.sh/release-name', namespace: 'meta.helm.sh/release-namespace' } as const;

/** While the agent still runs: it takes off its finalizers once peers have been told. */
async function removeTenantNamespaces(io: CliIo, kube: KubeClient, deadline: number, step: Step): Promise<void> {
  const selector = `${label.tenantNamespace}=true`;
  let left = await kube.list(namespaces, selector);
  for (const namespace of left) await kube.delete(namespaces, refOf(namespace), namespace.metadata.uid);
  const names = () => left.map(({ metadata }) => metadata.name).join(', ');
  await poll(
    io,
    deadline - io.clock.now(),
    async () => {
      left = await kube.list(namespaces, selector);
      step.update(names());
      return left.length === 0 ? true : undefined;
    },
    () =>
      new AppError('deadline_exceeded', `the tenant namespaces ${names()} do not go away`, {
        detail: {
          remedy: `see what is left in them: kubectl get liqo -n NAMESPACE; then repeat. The agent still runs, without its webhooks`,
        },
      }),
  );
}

const isCrd = ({ type }: OwnObject): boolean => type.plural === customResourceDefinitions.plural;
const isSystemNamespace = ({ type, object }: OwnObject): boolean =>
  type.plural === namespaces.plural && object.metadata.name === systemNamespace;
const isCustom = ({ type }: OwnObject): boolean =>
  allKinds.some(({ group, plural }) => group === type.group && plural === type.plural);
const isStorageNamespace = ({ type, object }: OwnObject): boolean =>
  type.plural === namespaces.plural && object.metadata.name === storageNamespace;
/** Goes with its namespace. */
const isInside = (one: OwnObject): boolean => one.object.metadata.namespace === systemNamespace && !isCustom(one);

/** Of `all`, what goes and is not going yet. */
async function removeObjects(io: CliIo, kube: KubeClient, all: readonly OwnObject[], step: Step): Promise<void> {
  // What has gone meanwhile, or has changed, is seen by the next look.
  const patch = (type: ResourceType, object: KubeObject, change: unknown) =>
    orUndefined(
      orUndefined(
        pastWebhooks(io, () => kube.mergePatch(type, refOf(object), change)),
        'kube_not_found',
      ),
      'kube_conflict',
    );
  const remove = async (objects: readonly OwnObject[]): Promise<void> => {
    for (const one of objects) {
      step.update(nameOf(one));
      if (isStorageNamespace(one) && (await hasVolumes(kube))) continue;
      await pastWebhooks(io, () => kube.delete(one.type, refOf(one.object), one.object.metadata.uid));
    }
  };
  for (const one of all.filter(({ fate }) => fate === 'unmark')) {
    step.update(nameOf(one));
    await patch(one.type, one.object, unmarking(one));
  }
  // Nothing takes finalizers off any more: with them neither object nor namespace would ever go.
  for (const { type, object } of all.filter(isCustom))
    if (object.metadata.finalizers?.length) await patch(type, object, { metadata: { finalizers: null } });
  for (const secret of await kube.list<KubeObject>(secrets, label.remoteClusterId)) {
    const { finalizers = [] } = secret.metadata;
    if (!finalizers.includes(finalizer.replicatorSecret)) continue;
    const others = finalizers.filter((name) => name !== finalizer.replicatorSecret);
    await patch(secrets, secret, { metadata: { finalizers: others } });
  }
  const going = all
    .filter(({ fate, object }) => fate === 'remove' && object.metadata.deletionTimestamp === undefined)
    .filter((one) => !isInside(one));
  const rest = going.filter((one) => !isSystemNamespace(one));
  await remove(rest.filter((one) => !isCrd(one)));
  await remove(rest.filter(isCrd));
  await remove(going.filter(isSystemNamespace));
}

const ourGates: ReadonlySet<string> = new Set([offloadingGate, moveGate]);

/** Our marks, which are taken off objects of other owners. */
function unmarking({ type, object }: OwnObject): unknown {
  if (type.plural === nodes.plural) return { metadata: { labels: { [nodeProcessLabel]: null } } };
  if (type.plural === namespaces.plural) return { metadata: { labels: { [label.schedulingEnabled]: null } } };
  if (type.plural === persistentVolumes.plural) {
    const { resourceVersion, finalizers = [] } = object.metadata;
    return { metadata: { resourceVersion, finalizers: finalizers.filter((name) => name !== volumeFinalizer) } };
  }
  if (type.plural === persistentVolumeClaims.plural) {
    const { resourceVersion, finalizers = [] } = object.metadata;
    const others = finalizers.filter((name) => name !== moveFinalizer);
    return { metadata: { resourceVersion, finalizers: others, annotations: { [storageAnnotation.moving]: null } } };
  }
  if (type.plural !== pods.plural) throw new TypeError(`no mark is known of kind ${type.kind}`);
  const { metadata, spec } = object as Pod;
  return {
    metadata: {
      resourceVersion: metadata.resourceVersion,
      labels: { [isthmusLabel.gated]: null, [isthmusLabel.waitsForMove]: null },
    },
    spec: { schedulingGates: (spec?.schedulingGates ?? []).filter(({ name }) => !ourGates.has(name)) },
  };
}

const shown = 5;

/** Looks, removes, and looks again until nothing but what is kept is there. */
async function removeAll(
  io: CliIo,
  kube: KubeClient,
  { purge, deadline }: { readonly purge: boolean; readonly deadline: number },
  step: Step,
): Promise<OwnObject[]> {
  let left: OwnObject[] = [];
  const text = (): string => {
    const more = left.length > shown ? ` and ${left.length - shown} more` : '';
    return `${left.slice(0, shown).map(withReason).join(', ')}${more}`;
  };
  return poll(
    io,
    deadline - io.clock.now(),
    async () => {
      const found = await ownObjects(io, kube, purge);
      left = found.filter((one) => !isKept(one));
      // Nothing guards them any more, and their namespaces may go: before anything else that holds the cluster back.
      const isReleased = await releaseGuestData(kube);
      if (left.length === 0 && isReleased) {
        step.update('nothing is left that had to go');
        return found;
      }
      await removeObjects(io, kube, found, step);
      step.update(`waiting for ${text()} to go`);
      return undefined;
    },
    () =>
      new AppError('deadline_exceeded', `these objects do not go away: ${text()}`, {
        detail: {
          remedy:
            'the agent is stopped and pods can be made; what is named waits for a finalizer or for kube-controller-manager: see `kubectl get KIND NAME -o yaml`, then repeat',
        },
      }),
  );
}

const withReason = (one: OwnObject): string => {
  const { finalizers = [] } = one.object.metadata;
  return finalizers.length === 0 ? nameOf(one) : `${nameOf(one)} (finalizers ${finalizers.join(', ')})`;
};
