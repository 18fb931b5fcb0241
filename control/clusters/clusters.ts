/** Clusters of a tenant: join tokens, enrolment, the agent's identity, facts, liveness, leaving. */
import { calculateJwkThumbprint } from 'jose';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import {
  ClusterId,
  type EnrollRequest,
  type EnrollResponse,
  type Intervals,
  oldestProtocolVersion,
  protocolVersion,
} from '#shared/schema/protocol/agent-protocol.ts';
import { type AgentCaller, type Caller, mustHave } from '../access/caller.ts';
import { newSecret, sha256Hex } from '../access/secrets.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import { unpublishOps } from '../directory/directory.ts';
import { type Capacity, countOps } from '../limits/capacity.ts';
import type { ClusterRecord, ClusterView, SeenRecord, SignedRequest } from '../model/cluster.ts';
import type { Coordinator } from '../model/coordinator.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { DirectoryEntry } from '../model/directory-entry.ts';
import type { LabelChange } from '../model/labels.ts';
import type { ClusterRef } from '../ports/agent-channel.ts';
import { type Item, type Op, type Page, withPrefix } from '../ports/store.ts';
import { everyItem } from '../store/every-item.ts';
import { key, partition, prefix } from '../store/keys.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { bearerOf, claimedCluster, clockSkewSeconds, maxAgeSeconds, verifySignature } from './agent-signature.ts';
import { clusterView, seenFrom } from './cluster.ts';
import { findToken, joinTokenLifeMs, putToken, spendToken, tokenText } from './join-tokens.ts';
import { mayChangeKey } from './key-change.ts';
import { labelCluster } from './labels.ts';
import { createLiveness, type LastSeen } from './last-seen.ts';
import { type ClusterFilter, listClusters } from './list.ts';
import { defaultHeartbeatSeconds, everySeconds, intervalsOf } from './poll-policy.ts';

export interface IssuedJoinToken {
  /** `isthmus1.…`, shown once. */
  readonly token: string;
  readonly clusterId: string;
  readonly expiresAt: number;
}

export interface Clusters {
  /** `replaceKey`: a joined cluster may enrol with another key by it, for which the caller needs `clusters:replace-key`. */
  createJoinToken(
    caller: Caller,
    clusterId: string,
    options?: { readonly replaceKey?: boolean | undefined },
    signal?: AbortSignal,
  ): Promise<IssuedJoinToken>;
  /**
   * Spends the token and pins the key. The request must be signed with that key (header `kid: enroll`). Repeating it with the same token
   * and key gives the same answer, so that a lost response does no harm; with another key it is `join_token_used`. A cluster that has joined may
   * come with another key if the one before signed it, or if the token replaces keys; else it is `cluster_key_known`.
   */
  enroll(request: EnrollRequest, signed: SignedRequest, signal?: AbortSignal): Promise<EnrollResponse>;
  /** Verifies signature, audience, path, body and freshness, and notes that the cluster was heard. */
  authenticateAgent(signed: SignedRequest, signal?: AbortSignal): Promise<AgentCaller>;
  /** Notes that the cluster was heard: for pings over the WebSocket. Answers with what the agent should know. */
  heard(cluster: LastSeen, signal?: AbortSignal): Promise<Intervals & { readonly revision: number }>;
  /** The last doorbell connection of the cluster closed: a hint that it may be gone. */
  lost(cluster: ClusterRef, signal?: AbortSignal): Promise<void>;
  get(caller: Caller, id: string, signal?: AbortSignal): Promise<ClusterView>;
  list(caller: Caller, page?: ClusterFilter, signal?: AbortSignal): Promise<Page<ClusterView>>;
  /** Replaces its labels. They stay with its name, also over leaving and joining again. */
  label(caller: Caller, id: string, change: LabelChange, signal?: AbortSignal): Promise<ClusterView>;
  /**
   * The cluster leaves: its key is no longer accepted. `in_use` while it has peerings, unless `force`, which ends them all and treats this
   * side as dead.
   */
  remove(
    caller: Caller,
    id: string,
    options?: { readonly force?: boolean },
    signal?: AbortSignal,
  ): Promise<ClusterView>;
}

type ClustersDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'log' | 'broker' | 'heartbeatSeconds'> & {
  readonly capacity: Capacity;
};

export function createClusters(deps: ClustersDeps, coordinator: Coordinator): Clusters {
  const { store, clock, ids, log } = deps;
  const heartbeatSeconds = deps.heartbeatSeconds ?? defaultHeartbeatSeconds;
  const { heard, lost } = createLiveness({ store, clock, heartbeatSeconds }, coordinator);

  const load = (tenant: string, id: string, signal?: AbortSignal): Promise<Item<ClusterRecord> | undefined> => {
    const { pk, sk } = key.cluster(tenant, id);
    return store.get<ClusterRecord>(pk, sk, signal);
  };
  const seenOf = (tenant: string, id: string, signal?: AbortSignal): Promise<Item<SeenRecord> | undefined> => {
    const { pk, sk } = key.seen(tenant, id);
    return store.get<SeenRecord>(pk, sk, signal);
  };

  async function mustLoad(caller: Caller, id: string, signal?: AbortSignal): Promise<Item<ClusterRecord>> {
    const item = await load(caller.tenant, id, signal);
    if (!item)
      throw new AppError('not_found', `there is no cluster ${JSON.stringify(id)}`, { detail: { cluster: id } });
    return item;
  }

  async function view(tenant: string, item: Item<ClusterRecord>, signal?: AbortSignal): Promise<ClusterView> {
    const seen = await seenOf(tenant, item.value.id, signal);
    return clusterView(item.value, item.version, seen?.value, clock.now());
  }

  /** Replay protection: a signed request counts once. The process that puts its `jti` first serves it. */
  async function spend(tenant: string, clusterId: string, jti: string, signal?: AbortSignal): Promise<void> {
    const expiresAt = clock.now() + (maxAgeSeconds + 3 * clockSkewSeconds) * 1_000;
    const op: Op = { op: 'put', ...key.spent(tenant, clusterId, sha256Hex(jti)), value: {}, expiresAt };
    try {
      await store.transact([op], [], signal);
    } catch (error) {
      if (codeOf(error) !== 'version_conflict') throw error;
      throw new AppError('request_replayed', 'this signed request was received before', {
        detail: { cluster: clusterId },
      });
    }
  }

  async function livePeerings(tenant: string, id: string, signal?: AbortSignal): Promise<string[]> {
    const live: string[] = [];
    const query = { partition: partition.cluster(tenant, id), ...withPrefix(prefix.peeringsOfCluster) };
    for await (const { value } of everyItem<{ readonly id: string }>(store, query, signal))
      if (await coordinator.isLive(tenant, value.id, signal)) live.push(value.id);
    return live;
  }

  return {
    heard,
    lost,

    async createJoinToken(caller, clusterId, { replaceKey = false } = {}, signal) {
      mustHave(caller, 'clusters:join');
      if (replaceKey) mustHave(caller, 'clusters:replace-key');
      const parsed = ClusterId.safeParse(clusterId);
      if (!parsed.success) {
        throw new AppError(
          'invalid_input',
          `cluster is ${JSON.stringify(clusterId)}; it ${parsed.error.issues[0]?.message}`,
          {
            detail: { field: 'cluster', value: clusterId },
          },
        );
      }
      const before = earlier<IssuedJoinToken>(caller);
      if (before) return before;
      const { url, caHash } = deps.broker();
      const secret = newSecret(ids);
      const expiresAt = clock.now() + joinTokenLifeMs;
      const token = tokenText({
        url,
        tenant: caller.tenant,
        clusterId,
        secret,
        ...(caHash === undefined ? {} : { caHash }),
      });
      const issued: IssuedJoinToken = { token, clusterId, expiresAt };
      const subject = `cluster/${clusterId}`;
      await store.transact(
        [
          putToken(caller.tenant, secret, {
            clusterId,
            createdBy: caller.principal,
            expiresAt,
            ...(replaceKey ? { replacesKey: true } : {}),
          }),
          ...auditOps(deps, caller, { action: 'cluster.create-join-token', subject, after: { expiresAt, replaceKey } }),
          ...remembered(caller, issued),
        ],
        [eventOf(deps, caller.tenant, 'cluster.join-token-created', subject, { expiresAt })],
        signal,
      );
      return issued;
    },

    async enroll(request, signed, signal) {
      const token = bearerOf(signed.authorization);
      const { tenant, clusterId } = claimedCluster(token);
      if (clusterId !== request.clusterId) {
        throw new AppError(
          'signature_invalid',
          `the request enrols ${request.clusterId} and is signed for ${clusterId}`,
        );
      }
      const { publicKey } = request;
      const claims = await verifySignature({
        request: signed,
        token,
        publicKey,
        audience: deps.broker().url,
        now: clock.now(),
      });
      const thumbprint = await calculateJwkThumbprint({ ...publicKey });
      const stored = await findToken(deps, { tenant, secret: request.token, clusterId, thumbprint }, signal);
      await spend(tenant, clusterId, claims.jti, signal);
      const before = await load(tenant, clusterId, signal);
      const protocol = mustSpeak(claims.ver ?? request.facts.protocolVersion);
      const answer: EnrollResponse = { clusterId, tenant, protocolVersion, heartbeatSeconds };
      if (stored.value.usedAt !== undefined) {
        if (before?.value.state === 'joined' && before.value.keyThumbprint === thumbprint) return answer;
        throw new AppError(
          'join_token_used',
          'the join token was used, and the cluster has left or changed its key since',
        );
      }
      const change = mayChangeKey({
        before: before?.value,
        publicKey,
        keyThumbprint: thumbprint,
        succession: request.succession,
        token: stored.value,
      });
      const counted = before?.value.state === 'joined' ? [] : [await deps.capacity.take(tenant, 'clusters', signal)];
      const now = clock.now();
      const record: ClusterRecord = {
        id: clusterId,
        state: 'joined',
        joinedAt: now,
        facts: request.facts,
        publicAddresses: seenFrom(signed.from, before?.value.publicAddresses),
        ...(before?.value.labels && { labels: before.value.labels }),
        publicKey,
        keyThumbprint: thumbprint,
      };
      const seen = await seenOf(tenant, clusterId, signal);
      const every = everySeconds(intervalsOf(undefined, now, heartbeatSeconds), protocol);
      const heardNow: SeenRecord = { at: now, every };
      const at = key.cluster(tenant, clusterId);
      const seenAt = key.seen(tenant, clusterId);
      const subject = `cluster/${clusterId}`;
      const actor = { tenant, principal: subject, from: signed.from, requestId: signed.requestId };
      const write = store.transact(
        [
          spendToken(stored, thumbprint, now),
          before
            ? { op: 'update', ...at, value: record, ifVersion: before.version }
            : { op: 'put', ...at, value: record },
          ...counted,
          seen
            ? { op: 'update', ...seenAt, value: heardNow, ifVersion: seen.version }
            : { op: 'put', ...seenAt, value: heardNow },
          ...auditOps(deps, actor, {
            action: 'cluster.enroll',
            subject,
            ...(before ? { before: { state: before.value.state, keyThumbprint: before.value.keyThumbprint } } : {}),
            after: {
              state: 'joined',
              keyThumbprint: thumbprint,
              tokenBy: stored.value.createdBy,
              ...(change && { keyBy: change }),
            },
          }),
        ],
        [eventOf(deps, tenant, 'cluster.joined', subject, { keyThumbprint: thumbprint })],
        signal,
      );
      await write.catch(async (error: unknown) => {
        // The last room may be what another cluster took meanwhile.
        if (codeOf(error) === 'version_conflict' && counted.length > 0)
          await deps.capacity.mustHaveRoom(tenant, 'clusters', signal);
        throw error;
      });
      log.info('cluster joined', { tenant, cluster: clusterId });
      await coordinator.lookAtCluster({ tenant, clusterId }, signal);
      return answer;
    },

    async authenticateAgent(signed, signal) {
      const token = bearerOf(signed.authorization);
      const { tenant, clusterId } = claimedCluster(token);
      const item = await load(tenant, clusterId, signal);
      if (item?.value.state !== 'joined') {
        throw new AppError('signature_invalid', `cluster ${clusterId} has not joined, or has left; join it again`);
      }
      const { publicKey } = item.value;
      const claims = await verifySignature({
        request: signed,
        token,
        publicKey,
        audience: deps.broker().url,
        now: clock.now(),
      });
      const protocol = mustSpeak(claims.ver);
      await spend(tenant, clusterId, claims.jti, signal);
      await heard({ tenant, clusterId, protocol }, signal);
      return {
        tenant,
        clusterId,
        principal: `cluster/${clusterId}`,
        from: signed.from,
        requestId: signed.requestId,
        signedAt: claims.iat * 1_000,
        protocol,
      };
    },

    async get(caller, id, signal) {
      mustHave(caller, 'clusters:read');
      return view(caller.tenant, await mustLoad(caller, id, signal), signal);
    },

    list: (caller, page = {}, signal) => listClusters(deps, caller, page, signal),

    async label(caller, id, change, signal) {
      await labelCluster(deps, caller, id, change, signal);
      return view(caller.tenant, await mustLoad(caller, id, signal), signal);
    },

    async remove(caller, id, options = {}, signal) {
      mustHave(caller, 'clusters:remove');
      const { tenant } = caller;
      const item = await mustLoad(caller, id, signal);
      if (item.value.state === 'left') return view(tenant, item, signal);
      const live = await livePeerings(tenant, id, signal);
      if (live.length > 0 && !options.force) {
        throw new AppError(
          'in_use',
          `cluster ${id} has peerings: ${live.join(', ')}; unpeer them first, or use force`,
          {
            detail: { cluster: id, peerings: live },
          },
        );
      }
      const record: ClusterRecord = { ...item.value, state: 'left', leftAt: clock.now() };
      // A cluster that has left can no longer be asked for.
      const shown = key.directory(tenant, id);
      const published = await store.get<DirectoryEntry>(shown.pk, shown.sk, signal);
      const subject = `cluster/${id}`;
      await store.transact(
        [
          { op: 'update', ...key.cluster(tenant, id), value: record, ifVersion: item.version },
          ...countOps(tenant, 'clusters', item.value, record),
          ...(published ? unpublishOps(published.value, published.version) : []),
          ...auditOps(deps, caller, {
            action: 'cluster.remove',
            subject,
            before: { state: 'joined' },
            after: { state: 'left', force: options.force ?? false, peerings: live },
          }),
        ],
        [eventOf(deps, tenant, 'cluster.left', subject)],
        signal,
      );
      await coordinator.lookAtCluster({ tenant, clusterId: id }, signal);
      return view(tenant, { ...item, value: record, version: item.version + 1 }, signal);
    },
  };
}

/** Newer agents decide for themselves whether they can speak with this broker: they know what they need. */
function mustSpeak(version = 1): number {
  if (version >= oldestProtocolVersion) return version;
  throw new AppError(
    'protocol_unsupported',
    `the agent speaks protocol version ${version}, this broker ${oldestProtocolVersion} to ${protocolVersion}; upgrade the agent`,
    { detail: { field: 'ver', value: version } },
  );
}
