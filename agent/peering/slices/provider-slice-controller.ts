/** Provider: answers each replicated slice, authentication and resources in one status write. */
import { sliceUser } from '#agent/model/peer-user.ts';
import {
  keysSecret,
  ownNodes,
  peerOf,
  peerSecrets,
  signingRequests,
  tenantNamespaces,
  tenantsByCluster,
} from '#agent/model/peering-selections.ts';
import { creatorOf } from '#agent/model/shadow-pod-creator.ts';
import { conditionOf, isAccepted, isReplica } from '#agent/model/slice-roles.ts';
import { placementOf } from '#agent/model/tenant-namespaces.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { writeStatus } from '#kube/writes/write-if-changed.ts';
import { storageClasses } from '#shared/domain/core-kinds.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import { type KubeObject, keyOf, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, requeueAfterMs, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { addResources, excessOver, type Resources, resourceTexts } from '#shared/domain/quantity.ts';
import type { StorageType } from '#shared/schema/definition/fields.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { cordonOf, drainOf, endDrain } from './drain.ts';
import { decideGrant, defaultNodeResources, type Grant, isDefaultClass, toleratedTaints } from './grant.ts';
import { leftBehind, placedPods, trackUsage } from './own-usage.ts';
import { providerConditions, supplyOf } from './provider-state.ts';
import { growAfterMs } from './share.ts';
import { createSliceAuthentication } from './slice-authentication.ts';
import { answer, platformOf, type SliceFacts } from './status.ts';
import { offeredClasses } from './storage-offer.ts';
import { createStorageRoom } from './storage-room.ts';

/** Not a slice, which has a namespace: what the pods of this cluster request has changed. */
const sharesKey = 'shares';
/** Neither: the storage that is left has changed, for this consumer, or for all. */
const roomKey = (consumer: string | undefined): string => `room:${consumer ?? ''}`;

const soonerOf = (next: Outcome, ms: number | undefined): Outcome => {
  if (ms === undefined || (requeueAfterMs(next) ?? Number.POSITIVE_INFINITY) <= ms) return next;
  return next.kind === 'waiting' ? waiting(next.on, ms) : next.kind === 'stalled' ? next : again(ms);
};

export function createRemoteSliceController({ cluster, config, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const cache = caches.cache(resourceSlices);
  const tenantCache = tenantsByCluster(caches);
  const namespaces = tenantNamespaces(caches);
  const secretCache = peerSecrets(caches);
  const requestCache = signingRequests(caches);
  const policies = caches.cache(peeringPolicies);
  const nodeCache = ownNodes(caches);
  const podCache = placedPods(caches);
  const classCache = caches.cache(storageClasses);
  const room = createStorageRoom(caches, { classes: classCache, nodes: nodeCache });
  const keys = keysSecret(caches, config.systemNamespace);
  const { authenticate, forget } = createSliceAuthentication({
    ...{ api, clock, config, keys, secretCache, requestCache, tenantCache, namespaces },
  });
  const reportWait = createReportWait(events, clock);
  /** The last answer of each slice, which the cache may not show yet: two slices decided in a row must not share one limit twice. */
  const granted = new Map<string, Record<string, string>>();
  /** When a slice was last given less, by uid. */
  const shrunkAt = new Map<string, number>();
  const replicas = (): ResourceSlice[] => cache.list().filter(isReplica);
  const siblings = (object: KubeObject): string[] =>
    replicas()
      .filter((slice) => slice.metadata.namespace === (object.metadata.namespace ?? object.metadata.name))
      .map(keyOf);

  const grantedTo = (slice: ResourceSlice): Record<string, string> =>
    granted.get(slice.metadata.uid ?? '') ??
    (isAccepted(slice, 'Resources') ? resourceTexts(slice.status?.resources) : {});

  const isOlder = (one: ResourceSlice, other: ResourceSlice): boolean => {
    const [a = '', b = ''] = [one, other].map(
      ({ metadata }) => `${metadata.creationTimestamp ?? ''} ${metadata.uid ?? ''}`,
    );
    return a < b;
  };

  const creatorOfSlice = ({ metadata, spec }: ResourceSlice): string =>
    creatorOf(sliceUser(metadata.name, spec.consumerClusterID ?? ''));
  /** As the pods of slices that have a grant are labelled. */
  const granters = (): Set<string> =>
    new Set(
      replicas()
        .filter((slice) => Object.keys(grantedTo(slice)).length > 0)
        .map(creatorOfSlice),
    );

  const offerTo = (consumer: string) => offeredClasses(policies.list(), consumer, classCache.list());
  const offerBy = (consumer: string, grants: readonly Resources[]): readonly StorageType[] =>
    room.offer(
      offerTo(consumer),
      consumer,
      grants.filter((one) => Object.keys(one).length > 0),
    );
  /** With what is left of each class once `slice` has this grant. */
  const offerWith = (slice: ResourceSlice, consumer: string, grant: Grant | undefined): readonly StorageType[] => {
    const { namespace, uid } = slice.metadata;
    const others = replicas()
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.uid !== uid)
      .map(grantedTo);
    return offerBy(consumer, [grant?.accepted ? grant.resources : {}, ...others]);
  };

  function grantOf(
    slice: ResourceSlice,
    consumer: string,
  ): { readonly grant: Grant | undefined; readonly lookAgainMs?: number } {
    const className = slice.spec.class ?? '';
    if (!isDefaultClass(className)) return { grant: undefined };
    const strangers = replicas().filter((other) => other.metadata.uid !== slice.metadata.uid);
    const left = leftBehind(usage, granters().add(creatorOfSlice(slice)));
    const sum = (of: readonly ResourceSlice[]) =>
      [...of.map(grantedTo), ...left.map(({ resources }) => resources)].reduce(
        (all, one) => addResources(all, one),
        {},
      );
    const current = grantedTo(slice);
    const { lookAgainMs: ofNodes, ...supply } = supplyOf(
      nodeCache.list(),
      usage.own,
      clock.now(),
      toleratedTaints(policies.list(), consumer),
    );
    const holdMs = (shrunkAt.get(slice.metadata.uid ?? '') ?? Number.NEGATIVE_INFINITY) + growAfterMs - clock.now();
    const grant = decideGrant({
      consumer,
      className,
      asked: slice.spec.resources ?? {},
      defaults: defaultNodeResources,
      others: [
        ...strangers.filter(({ metadata }) => metadata.namespace === slice.metadata.namespace).map(grantedTo),
        ...left.filter((guest) => guest.consumer === consumer).map(({ resources }) => resources),
      ],
      policies: policies.list(),
      current: Object.keys(current).length === 0 ? undefined : current,
      capacity: {
        ...supply,
        older: sum(strangers.filter((other) => isOlder(other, slice))),
        granted: sum(strangers),
      },
      storageClasses: offerTo(consumer).map(({ storageClassName }) => storageClassName),
      mayGrow: holdMs <= 0,
    });
    const times = [holdMs > 0 ? holdMs : undefined, ofNodes].filter((ms) => ms !== undefined);
    return { grant, ...(times.length > 0 && { lookAgainMs: Math.min(...times) }) };
  }

  async function publish(slice: ResourceSlice, facts: SliceFacts, signal: AbortSignal): Promise<void> {
    const status = answer(slice, facts);
    const uid = slice.metadata.uid ?? '';
    const before = conditionOf(slice, 'Resources')?.status;
    await writeStatus(api, resourceSlices, slice, status, signal);
    const verdict = status.conditions?.find(({ type }) => type === 'Resources');
    const now = verdict?.status === 'Accepted' ? resourceTexts(status.resources) : {};
    // A consumer that asks for less may have it back at once.
    const isCut = facts.grant?.accepted === true && facts.grant.less !== undefined;
    if (isCut && excessOver(grantedTo(slice), now).length > 0) shrunkAt.set(uid, clock.now());
    granted.set(uid, now);
    if (verdict?.status === 'Denied' && before !== 'Denied') {
      events.emit(slice, 'Warning', verdict.reason ?? 'ResourcesDenied', verdict.message ?? 'denied');
    }
  }

  async function reply(slice: ResourceSlice, signal: AbortSignal): Promise<Outcome> {
    const { consumerClusterID: consumer, csr } = slice.spec;
    if (consumer === undefined || csr === undefined || csr === '')
      return waiting('spec.consumerClusterID and spec.csr, which the consumer fills in', 60_000);
    const origin = slice.metadata.labels?.[label.originId];
    const placement =
      origin === consumer
        ? placementOf(slice, consumer, namespaces.list())
        : {
            outcome: stalled(
              'OriginMismatch',
              `label ${label.originId} is ${origin}, spec.consumerClusterID is ${consumer}; they must be equal`,
            ),
          };
    if ('outcome' in placement) {
      if (placement.outcome.kind !== 'stalled') return placement.outcome;
      const denied: SliceFacts = {
        authentication: { denied: placement.outcome.message },
        tenantCondition: 'Active',
        grant: undefined,
        storageClasses: [],
        nodeLabels: {},
        nodeConditions: [],
        drained: false,
        nowMs: clock.now(),
      };
      await publish(slice, denied, signal);
      return placement.outcome;
    }
    const tenant = tenantCache
      .byIndex('cluster', consumer)
      .find(
        (one) => one.metadata.namespace === slice.metadata.namespace && one.metadata.deletionTimestamp === undefined,
      );
    if (tenant === undefined)
      return waiting(`a Tenant for ${consumer} in namespace ${slice.metadata.namespace}`, 30_000);
    if (tenant.spec.authzPolicy !== 'TolerateNoHandshake' && tenant.status?.authParams === undefined) {
      return waiting(`the handshake of Tenant ${tenant.metadata.name}`, 30_000);
    }
    const authenticated = await authenticate(slice, tenant, signal);
    if ('outcome' in authenticated) return authenticated.outcome;
    const { grant, lookAgainMs } = grantOf(slice, consumer);
    const facts: SliceFacts = {
      authentication: authenticated.facts,
      tenantCondition: tenant.spec.tenantCondition ?? 'Active',
      grant,
      storageClasses: offerWith(slice, consumer, grant),
      nodeLabels: { ...config.clusterLabels, ...platformOf(nodeCache.list()) },
      nodeConditions: providerConditions(
        nodeCache.list(),
        cordonOf(slice, tenant),
        toleratedTaints(policies.list(), consumer),
      ),
      drained: drainOf(slice) !== undefined,
      nowMs: clock.now(),
    };
    await publish(slice, facts, signal);
    const draining = await endDrain({ api, clock, events }, slice, consumer, signal);
    return draining ?? soonerOf(authenticated.next, lookAgainMs);
  }

  /** Looks only at those whose grant would change: pods of this cluster come and go all the time. */
  function lookAtShares(): Outcome {
    for (const slice of replicas()) {
      const consumer = slice.spec.consumerClusterID;
      const { grant } = consumer === undefined ? {} : grantOf(slice, consumer);
      const same =
        grant === undefined ||
        (grant.accepted ? sameJson(grant.resources, grantedTo(slice)) : !isAccepted(slice, 'Resources'));
      if (!same) controller.enqueue(keyOf(slice));
    }
    return settled;
  }

  /** Looks only at those whose offer would change: claims of guests come and go all the time. Grants do not depend on them. */
  function lookAtRoom(key: string): Outcome {
    const grants = new Map<string, Record<string, string>[]>();
    const asked = replicas().filter(
      ({ spec }) => key === roomKey(undefined) || key === roomKey(spec.consumerClusterID),
    );
    for (const slice of asked) {
      const { namespace = '' } = slice.metadata;
      grants.set(namespace, [...(grants.get(namespace) ?? []), grantedTo(slice)]);
    }
    for (const slice of asked) {
      const { metadata, spec, status } = slice;
      const { consumerClusterID: consumer } = spec;
      if (consumer === undefined || !isAccepted(slice, 'Resources')) continue;
      const offer = offerBy(consumer, grants.get(metadata.namespace ?? '') ?? []);
      if (!sameJson(offer, status?.storageClasses ?? [])) controller.enqueue(keyOf(slice));
    }
    return settled;
  }

  const controller = createController(
    {
      name: 'remote-slice',
      // One at a time: the limit of a peer is over all its slices.
      workers: 1,
      watches: [
        watch(cache, (slice) => (isReplica(slice) ? [keyOf(slice), ...siblings(slice)] : [])),
        watch(tenantCache, siblings),
        watch(namespaces, siblings),
        watch(policies, () => replicas().map(keyOf)),
        watch(nodeCache, () => replicas().map(keyOf)),
        watch(classCache, () => replicas().map(keyOf)),
        watch(podCache, () => []),
        ...room.watches(roomKey),
        watch(keys, () => replicas().map(keyOf)),
        watch(secretCache, (secret) => {
          const slice = ownerName(resourceSlices, secret);
          return slice === undefined ? [] : [`${secret.metadata.namespace}/${slice}`];
        }),
        watch(requestCache, (request) => {
          const slice = request.metadata.labels?.[label.resourceSliceName];
          const homes = namespaces.list().filter((namespace) => peerOf(namespace) === peerOf(request));
          return slice === undefined ? [] : homes.map((namespace) => `${namespace.metadata.name}/${slice}`);
        }),
      ],
      async reconcile(key, signal) {
        if (key === sharesKey) return lookAtShares();
        if (!key.includes('/')) return lookAtRoom(key);
        const ref = refOfKey(key);
        const slice = cache.get(ref);
        if (slice === undefined) {
          await forget(ref, signal);
          const known = new Set(cache.list().map(({ metadata }) => metadata.uid));
          for (const uid of granted.keys()) if (!known.has(uid)) granted.delete(uid);
          for (const uid of shrunkAt.keys()) if (!known.has(uid)) shrunkAt.delete(uid);
          return settled;
        }
        if (!isReplica(slice) || slice.metadata.deletionTimestamp !== undefined) return settled;
        return reportWait(slice, await reply(slice, signal));
      },
    },
    { clock, log },
  );
  const usage = trackUsage(podCache, (guest) => {
    if (guest === undefined || !granters().has(guest.creator)) controller.enqueue(sharesKey);
  });
  return controller;
}
