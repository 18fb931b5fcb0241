/**
 * Provider: the data of guests outlives their claims. A claim goes only once its volume says itself whose it is and will not be deleted; what volumes
 * say becomes RetainedVolumes. Every step derives from the objects, so a controller that died between two writes is continued by the next.
 */
import { termsFor } from '#agent/peering/slices/grant.ts';
import type { Cluster, Controller, KubeApi } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { isChangedOrGone } from '#kube/writes/changed-or-gone.ts';
import { deleteAsRead, dropFinalizer, writeStatus } from '#kube/writes/write-if-changed.ts';
import {
  namespaces,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { keyOf, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { again, type Outcome, settled } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { type RetainedVolume, retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { guestsOf } from '../model/guest-namespace.ts';
import { guestClaimCache, keptVolumeCache } from './caches.ts';
import {
  type ClaimDecision,
  type ClaimFacts,
  decideClaim,
  decideRecord,
  isOfEarlierEnd,
  type RecordFacts,
  recordOf,
} from './decide.ts';
import { guardClaim } from './guard.ts';

export interface RetentionDeps extends ControllerDeps {
  readonly cluster: Cluster;
}

const staleMs = 100;
const dayMs = 86_400_000;
const defaultDays = 30;

/** What was read has changed, or is gone: look again. */
const unlessStale = (error: unknown): Outcome => {
  if (isChangedOrGone(error) || codeOf(error) === 'kube_already_exists') return again(staleMs);
  throw error;
};

/** Undefined: there is no such namespace. */
async function isOfGuests(
  api: KubeApi,
  name: string,
  consumer: string,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const namespace = await api.get(namespaces, { name }, signal);
  return namespace && guestsOf(namespace) === consumer;
}

export function createGuestClaimController({ cluster, ...deps }: RetentionDeps): Controller {
  const { api, caches, events } = cluster;
  const claims = guestClaimCache(caches);
  const policies = caches.cache(peeringPolicies);
  const keepMs = (consumer: string): number => {
    const said = termsFor(policies.list(), consumer).map(([, { retainedVolumeDays }]) => retainedVolumeDays);
    return (said.find((days) => days !== undefined) ?? defaultDays) * dayMs;
  };
  const patch = (volume: PersistentVolume, body: unknown, signal: AbortSignal) =>
    api.mergePatch(persistentVolumes, refOf(volume), body, {}, signal);
  /** Also of one that is there, so that a removal that was decided by an earlier look finds another version. */
  async function writeRecord(volume: PersistentVolume, signal: AbortSignal): Promise<void> {
    const wanted = recordOf(volume);
    const before = await api.get(retainedVolumes, refOf(volume), signal);
    if (before === undefined) await api.create(retainedVolumes, wanted, {}, signal);
    else if (isOfEarlierEnd(before, volume))
      await api.update(retainedVolumes, { ...before, spec: wanted.spec }, {}, signal);
  }
  /** A claim elsewhere that has the label, as one that was copied with it, gets no guard. */
  async function guard(claim: PersistentVolumeClaim, consumer: string, signal: AbortSignal): Promise<void> {
    if (await isOfGuests(api, claim.metadata.namespace ?? '', consumer, signal))
      await guardClaim(api, claim, consumer, signal);
  }
  async function carryOut(
    decision: ClaimDecision,
    { claim, consumer, volume }: Pick<ClaimFacts, 'claim' | 'consumer' | 'volume'>,
    signal: AbortSignal,
  ): Promise<void> {
    if (decision.do === 'guard') return guard(claim, consumer, signal);
    if (decision.do === 'nothing' || volume === undefined) return;
    const now = decision.first === undefined ? volume : await patch(volume, decision.first, signal);
    if (decision.do === 'release' && decision.dataGoes) await api.delete(retainedVolumes, refOf(volume), {}, signal);
    if (decision.do !== 'keep') return;
    await writeRecord(now, signal);
    const message = `its data stays as RetainedVolume ${now.metadata.name}: no order to delete it came with the deletion`;
    events.emit(claim, 'Normal', 'DataRetained', message);
  }

  return createController(
    {
      name: 'guest-claim',
      watches: [watch(claims, (claim) => [keyOf(claim)]), watch(policies, () => [])],
      async reconcile(key, signal) {
        const claim = claims.get(refOfKey(key));
        if (claim === undefined) return settled;
        const consumer = claim.metadata.labels?.[guestVolume.label] ?? '';
        const { volumeName: name } = claim.spec ?? {};
        const volume = name === undefined ? undefined : await api.get(persistentVolumes, { name }, signal);
        const decision = decideClaim({
          claim,
          consumer,
          volume,
          keepMs: keepMs(consumer),
          nowMs: deps.clock.now(),
        });
        try {
          await carryOut(decision, { claim, consumer, volume }, signal);
          if (decision.do === 'release' || decision.do === 'keep')
            await dropFinalizer(api, persistentVolumeClaims, claim, guestVolume.finalizer, signal);
          return settled;
        } catch (error) {
          return unlessStale(error);
        }
      },
    },
    deps,
  );
}

export function createRetainedVolumeController({ cluster, ...deps }: RetentionDeps): Controller {
  const { api, caches } = cluster;
  const volumes = keptVolumeCache(caches);
  const records = caches.cache(retainedVolumes);
  const claims = guestClaimCache(caches);
  const key = ({ metadata }: PersistentVolume | RetainedVolume): string[] => [metadata.name];
  /** A claim of a guest without its finalizer gets that. Elsewhere the label says nothing. */
  async function holderOf(
    claim: PersistentVolumeClaim | undefined,
    uid: string | undefined,
    signal: AbortSignal,
  ): Promise<RecordFacts['holder']> {
    if (claim === undefined || claim.metadata.uid !== uid) return 'none';
    const { labels = {}, finalizers = [], namespace = '' } = claim.metadata;
    const consumer = labels[guestVolume.label];
    if (consumer === undefined) return 'other';
    if (finalizers.includes(guestVolume.finalizer)) return 'guest';
    return (await isOfGuests(api, namespace, consumer, signal)) ? 'guest' : 'other';
  }
  /** Of a namespace that is gone, only the one in which the volume had its claim is known. */
  async function isGuarded({ consumer, remoteClaim }: RetainedVolume['spec'], name: string, signal: AbortSignal) {
    return (await isOfGuests(api, name, consumer, signal)) ?? name === remoteClaim.namespace;
  }
  return createController(
    {
      name: 'retained-volume',
      watches: [
        watch(volumes, key),
        watch(records, key),
        // The end of a claim to which a volume was never bound writes nothing to that volume.
        watch(claims, ({ metadata }) => volumes.byIndex('claim', metadata.uid ?? '').flatMap(key)),
      ],
      async reconcile(name, signal) {
        // In this order: a volume that is kept again after it was read has written its record since, and a removal finds another version.
        const record = await api.get(retainedVolumes, { name }, signal);
        const volume = await api.get(persistentVolumes, { name }, signal);
        const { namespace = '', name: bound, uid } = volume?.spec?.claimRef ?? {};
        const claim =
          uid && bound
            ? await api.get(persistentVolumeClaims, { ...(namespace && { namespace }), name: bound }, signal)
            : undefined;
        const holder = await holderOf(claim, uid, signal);
        // Of most kept volumes the UID is that of the record: nothing is asked of their namespaces.
        const namesAnother = uid !== undefined && uid !== record?.spec.remoteClaim.uid;
        const decision = decideRecord({
          record,
          volume,
          holder,
          isGuarded:
            record !== undefined &&
            namesAnother &&
            holder === 'none' &&
            (await isGuarded(record.spec, namespace, signal)),
          nowMs: deps.clock.now(),
        });
        try {
          if (decision.create) await api.create(retainedVolumes, decision.create, {}, signal);
          if (decision.replace && record)
            await api.update(retainedVolumes, { ...record, spec: decision.replace }, {}, signal);
          if (decision.volume && volume) await api.mergePatch(persistentVolumes, { name }, decision.volume, {}, signal);
          if (decision.status && record) await writeStatus(api, retainedVolumes, record, decision.status, signal);
          if (decision.remove && record) await deleteAsRead(api, retainedVolumes, record, signal);
        } catch (error) {
          return unlessStale(error);
        }
        return decision.lookAgainMs === undefined ? settled : again(decision.lookAgainMs);
      },
    },
    deps,
  );
}
