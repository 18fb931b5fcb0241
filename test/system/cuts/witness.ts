/** Sees what runs and what is deleted, in both clusters, from the first to the last. */
import type { Caches } from '#kube/model/types.ts';
import { configMaps, endpointSlices, pods, secrets, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';

export interface Deletion {
  /** `CLUSTER Kind name`. */
  readonly what: string;
  /** When it was asked for, in whole seconds as Kubernetes writes it, without the grace period. */
  readonly at: number;
}

/** A container that ran, under the one name that must not run twice. */
interface Run {
  readonly identity: string;
  readonly where: string;
  readonly uid: string;
  readonly from: number;
  to: number | undefined;
}

export interface Scene {
  readonly cluster: string;
  readonly namespace: string;
  readonly caches: Caches;
  /** Whether a pod that this cluster shows also runs in it. */
  readonly runsHere: (pod: Pod) => boolean;
}

const watched = [pods, shadowPods, configMaps, secrets, services, endpointSlices, shadowEndpointSlices];

/** Pods of a StatefulSet by their name, of a Job by the name of the Job; any other pod may have as many of its like as it wants. */
function identityOf({ metadata }: Pod): string | undefined {
  const labels = metadata.labels ?? {};
  const job = labels['batch.kubernetes.io/job-name'];
  if (job !== undefined) return `job ${job}`;
  return labels['statefulset.kubernetes.io/pod-name'] === undefined ? undefined : `pod ${metadata.name}`;
}

const isRunning = ({ status }: Pod): boolean =>
  status?.containerStatuses?.some(({ state }) => state?.running !== undefined) ?? false;

export class Witness {
  readonly deletions: Deletion[] = [];
  readonly #runs: Run[] = [];

  /** Ends with `signal`. */
  async watch({ cluster, namespace, caches, runsHere }: Scene, signal: AbortSignal): Promise<void> {
    await Promise.all(
      watched.map(async (type) => {
        const cache = caches.scoped(type as unknown as ResourceType<KubeObject>, { namespace }, signal);
        cache.subscribe(({ before, after }) => {
          if (type.kind === 'Pod') this.#seePod(cluster, runsHere, before as Pod | undefined, after as Pod | undefined);
          const at = deletedAt(after);
          if (at !== undefined && deletedAt(before) === undefined) this.#deleted(cluster, after as KubeObject, at);
          if (after === undefined && before !== undefined && deletedAt(before) === undefined)
            this.#deleted(cluster, before, Date.now());
        });
        await cache.synced(signal);
      }),
    );
  }

  /** Of pods that must not, those that ran in two places at a time. */
  doubles(): string[] {
    return this.#runs.flatMap((run, i) =>
      this.#runs
        .slice(i + 1)
        .filter((other) => other.identity === run.identity && other.uid !== run.uid)
        .filter((other) => other.from < (run.to ?? Number.POSITIVE_INFINITY))
        .filter((other) => run.from < (other.to ?? Number.POSITIVE_INFINITY))
        .map(
          (other) => `${run.identity} ran in ${run.where} (${run.uid}) and in ${other.where} (${other.uid}) at once`,
        ),
    );
  }

  /** How many pods of this identity ever ran. */
  ran(identity: string): number {
    return new Set(this.#runs.filter((run) => run.identity === identity).map(({ uid }) => uid)).size;
  }

  #deleted(cluster: string, { kind, metadata }: KubeObject, at: number): void {
    this.deletions.push({ what: `${cluster} ${kind} ${metadata.name}`, at });
  }

  #seePod(cluster: string, runsHere: Scene['runsHere'], before: Pod | undefined, after: Pod | undefined): void {
    const pod = after ?? before;
    const identity = pod && identityOf(pod);
    if (pod === undefined || identity === undefined || !runsHere(pod)) return;
    const uid = pod.metadata.uid ?? '';
    const open = this.#runs.find((run) => run.uid === uid && run.to === undefined);
    const runs = after !== undefined && isRunning(after);
    if (runs && open === undefined) this.#runs.push({ identity, where: cluster, uid, from: Date.now(), to: undefined });
    if (!runs && open !== undefined) open.to = Date.now();
  }
}

function deletedAt(object: KubeObject | undefined): number | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = object?.metadata ?? {};
  return deletionTimestamp === undefined
    ? undefined
    : Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000;
}
