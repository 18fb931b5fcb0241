/** Decides, on behalf of the gateway pods of this node, which replica of a link is active: the holder of a Lease, shown by a label. */
import type { Cluster } from '#kube/model/types.ts';
import { runAsLeader } from '#kube/run/leader-election.ts';
import { abortScope } from '#shared/async/abort-scope.ts';
import { leases, pods } from '#shared/domain/core-kinds.ts';
import { networkLabel, networkName } from '#shared/domain/network-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { GatewayPod, Link } from '../objects/link-objects.ts';

/** On the Lease: where the active replica heard the peer last, so that the next one dials there first. */
const peerEndpointAnnotation = 'networking.isthmus.dev/peer-endpoint';

/**
 * Short, since a node that dies takes its gateways along; the pod's end is seen by its own node at once and does not wait for this.
 * The data path does not hang on it: while the API server is away, the label as last seen counts.
 */
const timing = { durationMs: 6_000, renewDeadlineMs: 4_500, retryMs: 1_500 } as const;

export interface ActiveDeps {
  readonly cluster: Pick<Cluster, 'api' | 'caches'>;
  readonly clock: Clock;
  readonly log: Log;
}

export type LinkName = Pick<Link, 'namespace' | 'gatewayName' | 'role'>;

const leaseOf = ({ namespace, gatewayName, role }: LinkName) => ({
  namespace,
  name: networkName.gatewayLease(gatewayName, namespace, role),
});

/**
 * Competes until the signal aborts, and then lets go at once. While it holds the Lease it keeps the label on its own pod and off the others:
 * `replicas` gives them as of now, `onChange` calls back when they change and returns what ends that.
 */
export async function electActiveGateway(
  { cluster, clock, log }: ActiveDeps,
  link: LinkName,
  pod: GatewayPod,
  replicas: { readonly now: () => readonly GatewayPod[]; readonly onChange: (listener: () => void) => () => void },
  signal: AbortSignal,
): Promise<void> {
  const { api, caches } = cluster;
  const lease = { ...leaseOf(link), identity: pod.name };
  await runAsLeader({ api, caches, clock, log }, { ...lease, ...timing }, signal, async (term) => {
    while (!term.aborted) {
      const nap = abortScope(term);
      const unsubscribe = replicas.onChange(() => nap.abort());
      const settled = await moveLabel(api, pod, replicas.now(), term).then(
        () => true,
        (error) => {
          if (!term.aborted) log.warn('could not move the label of the active gateway', { code: codeOf(error) });
          return false;
        },
      );
      await clock.sleep(settled ? 30_000 : 500, nap.signal).catch(() => undefined);
      unsubscribe();
      nap.unlink();
    }
  });
}

/** First onto ours, then off the others: a moment with two is harmless, one with none would refuse packets. */
async function moveLabel(
  api: Cluster['api'],
  pod: GatewayPod,
  replicas: readonly GatewayPod[],
  signal: AbortSignal,
): Promise<void> {
  const own = replicas.find(({ uid }) => uid === pod.uid);
  if (own?.active !== true) await setLabel(api, pod, 'true', signal);
  for (const other of replicas) if (other.uid !== pod.uid && other.active) await setLabel(api, other, null, signal);
}

async function setLabel(
  api: Cluster['api'],
  { namespace, name, uid }: GatewayPod,
  value: 'true' | null,
  signal: AbortSignal,
): Promise<void> {
  // With the UID, the patch meets only this incarnation.
  const patch = { metadata: { uid, labels: { [networkLabel.active]: value } } };
  try {
    await api.mergePatch(pods, { namespace, name }, patch, {}, signal);
  } catch (error) {
    if (codeOf(error) !== 'kube_not_found') throw error;
  }
}

export async function lastKnownEndpoint(
  api: Cluster['api'],
  link: LinkName,
  signal: AbortSignal,
): Promise<string | undefined> {
  const lease = await api.get(leases, leaseOf(link), signal).catch(() => undefined);
  return lease?.metadata.annotations?.[peerEndpointAnnotation];
}

export async function rememberEndpoint(
  api: Cluster['api'],
  link: LinkName,
  endpoint: string,
  signal: AbortSignal,
): Promise<void> {
  const patch = { metadata: { annotations: { [peerEndpointAnnotation]: endpoint } } };
  await api.mergePatch(leases, leaseOf(link), patch, {}, signal);
}
