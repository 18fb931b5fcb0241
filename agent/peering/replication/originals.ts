/** The objects that have copies: copied to their provider, their status brought back, the copies taken back at their end. */
import { peerOf } from '#agent/model/peering-selections.ts';
import { isOriginal, providerOf } from '#agent/model/slice-roles.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { addFinalizer, dropFinalizer, writeStatus } from '#kube/writes/write-if-changed.ts';
import { type ObjectRef, type ResourceType, refOfKey } from '#shared/domain/kube-object.ts';
import { finalizer } from '#shared/domain/liqo-keys.ts';
import { type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { PeeringDeps } from '../model/deps.ts';
import type { Connections } from './connections.ts';
import { isSilence, withdrawn } from './copies.ts';
import type { CredentialWork } from './credentials.ts';
import { decideCopy } from './decide.ts';
import { hasLostAccess, isUnreachable, type ReachabilityFacts } from './reachability.ts';
import { atProvider, outcomeOfFailure } from './remote-failure.ts';
import type { Replicated } from './replica.ts';
import type { Session } from './sessions.ts';
import type { ReplicatorView } from './work-keys.ts';

export interface OriginalWork {
  reconcile(type: ResourceType<Replicated>, key: string, signal: AbortSignal): Promise<Outcome>;
}

export function createOriginalWork(
  deps: PeeringDeps,
  view: ReplicatorView,
  connections: Connections,
  credentials: Pick<CredentialWork, 'hold'>,
): OriginalWork {
  const { cluster, clusterId, clock } = deps;
  const { api, events } = cluster;
  const reportWait = createReportWait(events, clock);

  /** A copy whose original is gone: its finalizer was removed by hand. */
  async function orphan(type: ResourceType<Replicated>, ref: ObjectRef, signal: AbortSignal): Promise<Outcome> {
    const session = connections.in(ref.namespace);
    const copy = session?.copies(type).get({ namespace: session.remoteNamespace, name: ref.name });
    if (session === undefined || copy === undefined || copy.metadata.deletionTimestamp !== undefined) return settled;
    if ((await api.get(type, ref, signal)) !== undefined) return settled;
    try {
      await atProvider(
        session.connection.api.delete(type, { namespace: session.remoteNamespace, name: ref.name }, {}, signal),
      );
      return settled;
    } catch (error) {
      const outcome = outcomeOfFailure(error, session.peer);
      if (outcome === undefined) throw error;
      return outcome;
    }
  }

  /** A Renew does not hold back the end of the peering: unlike a grant, it is left behind at a provider that has closed its proxy. */
  async function isTakenBack(
    type: ResourceType<Replicated>,
    name: string,
    session: Session,
    reachability: ReachabilityFacts | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      return await withdrawn(type, name, session, clusterId, signal);
    } catch (error) {
      const isLeft =
        type.plural === renews.plural && reachability !== undefined && hasLostAccess(reachability, clock.now());
      if (isLeft && isSilence(error)) return true;
      throw error;
    }
  }

  async function withdraw(type: ResourceType<Replicated>, local: Replicated, signal: AbortSignal): Promise<Outcome> {
    if (local.metadata.finalizers?.includes(finalizer.replicatorResource) !== true) return settled;
    const { name, namespace = '' } = local.metadata;
    const provider = providerOf(local) ?? peerOf(local) ?? '';
    const secret = view.credentialsFor(provider, namespace);
    const reachability = secret && view.link.reachabilityOf(secret);
    if (!view.isDead(provider)) {
      const node = type.plural === resourceSlices.plural ? view.nodes.get({ namespace, name }) : undefined;
      // The pods behind a virtual node end through the rights that the slice gives.
      if (node !== undefined && ownerName(resourceSlices, node) === name)
        return waiting(`VirtualNode ${name} to drain`, 30_000);
      if (reachability === undefined || !isUnreachable(reachability)) {
        const session = connections.in(namespace, provider);
        if (session === undefined)
          return waiting(`a connection to provider ${provider} (a kubeconfig Secret of type ControlPlane)`, 30_000);
        if (!(await isTakenBack(type, name, session, reachability, signal)))
          return waiting(`provider ${provider} to remove its copy`, 10_000);
      }
    }
    await dropFinalizer(api, type, local, finalizer.replicatorResource, signal);
    return settled;
  }

  async function replicate(
    type: ResourceType<Replicated>,
    local: Replicated,
    provider: string,
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (view.isDead(provider))
      return stalled(
        'PeerDeclaredDead',
        `ForeignCluster ${provider} is annotated as permanently unreachable; remove the annotation to go on`,
      );
    const session = connections.in(local.metadata.namespace, provider);
    if (session === undefined)
      return waiting(`control-plane credentials for ${provider} (Identity of type ControlPlane)`, 60_000);
    const copies = session.copies(type);
    if (!copies.isSynced())
      return waiting(`provider ${provider} to list our copies (it may not have given us rights yet)`, 10_000);
    if (!(await credentials.hold(session, signal)))
      return waiting(
        `control-plane credentials for ${provider}, as Secret ${session.secretKey} is being deleted`,
        10_000,
      );
    const held = await addFinalizer(api, type, local, finalizer.replicatorResource, signal);
    const ref = { namespace: session.remoteNamespace, name: local.metadata.name };
    const remote = session.connection.api;
    const copy = copies.get(ref) ?? (await atProvider(remote.get(type, ref, signal)));
    const step = decideCopy(held, copy, clusterId, session.remoteNamespace);
    switch (step.do) {
      case 'create':
        await atProvider(remote.create(type, step.replica, {}, signal));
        return settled;
      case 'wait':
        return waiting(step.on, 10_000);
      case 'refuse':
        return stalled('NameTakenAtProvider', step.message);
      case 'correct':
        await atProvider(remote.update(type, step.replica, {}, signal));
        break;
      case 'nothing':
        break;
    }
    if (copy?.status !== undefined) await writeStatus(api, type, held, copy.status, signal);
    return settled;
  }

  return {
    async reconcile(type, key, signal) {
      const ref = refOfKey(key);
      const local = view.originals(type).get(ref);
      if (local === undefined) return orphan(type, ref, signal);
      const provider = providerOf(local);
      const isWanted = isOriginal(local) && provider !== undefined && local.metadata.deletionTimestamp === undefined;
      try {
        return reportWait(
          local,
          isWanted ? await replicate(type, local, provider, signal) : await withdraw(type, local, signal),
        );
      } catch (error) {
        const outcome = outcomeOfFailure(error, provider ?? '');
        if (outcome === undefined) throw error;
        return reportWait(local, outcome);
      }
    },
  };
}
