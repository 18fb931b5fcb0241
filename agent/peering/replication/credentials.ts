/** The Secrets that lead to providers: opened, tried, held for as long as copies depend on them, let go. */
import { peerOf } from '#agent/model/peering-selections.ts';
import { placementOf } from '#agent/model/tenant-namespaces.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import { addFinalizer, dropFinalizer } from '#kube/writes/write-if-changed.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { keyOf, refOf, refOfKey, type Secret } from '#shared/domain/kube-object.ts';
import { finalizer, isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { createAccessCheck } from './check-access.ts';
import type { Connections } from './connections.ts';
import { copiesLeft, isSilence } from './copies.ts';
import { hasLostAccess, isUnreachable, proxyInLink } from './reachability.ts';
import { outcomeOfFailure } from './remote-failure.ts';
import { isControlPlane, type Session } from './sessions.ts';
import type { ReplicatorView } from './work-keys.ts';

export interface CredentialWork {
  reconcile(key: string, signal: AbortSignal): Promise<Outcome>;
  /** Their link changed: a connection that cannot be of use any more ends, and with it the requests that wait there. */
  hangUp(key: string): Outcome;
  /** From the first copy on: credentials that never worked are deleted like any other Secret. False: they are about to go. */
  hold(session: Session, signal: AbortSignal): Promise<boolean>;
}

export function createCredentialWork(
  deps: PeeringDeps,
  view: ReplicatorView,
  connections: Connections,
): CredentialWork {
  const { cluster, clusterId, clock, log } = deps;
  const { api, events } = cluster;
  const reportWait = createReportWait(events, clock);
  const checkAccess = createAccessCheck(clusterId);

  async function release(secret: Secret, signal: AbortSignal): Promise<Outcome> {
    const peer = peerOf(secret) ?? '';
    const done = async (): Promise<Outcome> => {
      connections.stop(keyOf(secret));
      await dropFinalizer(api, secrets, secret, finalizer.replicatorSecret, signal);
      return settled;
    };
    if (secret.metadata.finalizers?.includes(finalizer.replicatorSecret) !== true || view.isDead(peer)) return done();
    const here = view
      .originalsOf(peer)
      .filter(({ object }) => object.metadata.finalizers?.includes(finalizer.replicatorResource));
    const facts = view.link.reachabilityOf(secret);
    const isCut = isUnreachable(facts);
    if (isCut) connections.stop(keyOf(secret));
    // First the connection: after a restart the originals below need it to go.
    const session = isCut ? undefined : await connections.ensure(secret);
    if (here.length > 0) {
      const names = here.map(({ type, object }) => `${type.kind} ${object.metadata.name}`).join(', ');
      return session !== undefined && 'kind' in session
        ? session
        : waiting(`removal of ${names}, which need these credentials`, 30_000);
    }
    const leave = (): Promise<Outcome> => {
      log.info('what is left at the provider goes with its Tenant: the way there is closed', { peer });
      return done();
    };
    if (session === undefined) return leave();
    if ('kind' in session) return done();
    try {
      const left = await copiesLeft(session, clusterId, signal);
      if (left.length === 0) return done();
      const names = left.map((copy) => copy.metadata.name).join(', ');
      return waiting(`provider ${peer} to remove its copies of ${names}`, 10_000);
    } catch (error) {
      if (isSilence(error) && hasLostAccess(facts, clock.now())) return leave();
      const outcome = outcomeOfFailure(error, peer);
      if (outcome === undefined) throw error;
      return outcome;
    }
  }

  return {
    async reconcile(key, signal) {
      const secret = view.secrets.get(refOfKey(key));
      if (secret === undefined || !isControlPlane(secret)) {
        connections.stop(key);
        return settled;
      }
      if (secret.metadata.deletionTimestamp !== undefined) return reportWait(secret, await release(secret, signal));
      // A consumer may write Secrets in namespaces mapped for it; only those in a tenant namespace speak for a provider.
      const placement = placementOf(secret, peerOf(secret), view.namespaces.list());
      if ('outcome' in placement) {
        connections.stop(key);
        return reportWait(secret, placement.outcome);
      }
      const session = await connections.ensure(secret);
      if ('kind' in session) return reportWait(secret, session);
      const { trouble = settled, warning } = await checkAccess(session, signal);
      if (warning !== undefined) events.emit(secret, 'Warning', warning.reason, warning.message);
      return reportWait(secret, trouble);
    },
    hangUp(key) {
      const secret = view.secrets.get(refOfKey(key));
      if (secret !== undefined && isUnreachable(view.link.reachabilityOf(secret))) connections.stop(key);
      return settled;
    },
    async hold({ secretKey }, signal) {
      const secret = view.secrets.get(refOfKey(secretKey));
      if (secret === undefined || secret.metadata.deletionTimestamp !== undefined) return false;
      const proxy = proxyInLink(secret, view.link.reachabilityOf(secret).configurations);
      if (proxy !== undefined && secret.metadata.annotations?.[isthmusAnnotation.proxyInLink] !== proxy)
        await api.mergePatch(
          secrets,
          refOf(secret),
          { metadata: { annotations: { [isthmusAnnotation.proxyInLink]: proxy } } },
          {},
          signal,
        );
      await addFinalizer(api, secrets, secret, finalizer.replicatorSecret, signal);
      return true;
    },
  };
}
