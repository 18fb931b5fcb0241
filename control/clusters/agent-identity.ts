/** The agent that speaks for a cluster: enrolment spends a join token and pins its key, which every later request is signed with. */
import { calculateJwkThumbprint } from 'jose';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { EnrollRequest, EnrollResponse } from '#shared/schema/protocol/agent-identity.ts';
import { oldestProtocolVersion, protocolVersion } from '#shared/schema/protocol/agent-protocol.ts';
import type { AgentCaller } from '../access/caller.ts';
import { sha256Hex } from '../access/secrets.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import type { Capacity } from '../limits/capacity.ts';
import type { ClusterRecord, SeenRecord, SignedRequest } from '../model/cluster.ts';
import type { Coordinator } from '../model/coordinator.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { Item, Op } from '../ports/store.ts';
import { key } from '../store/keys.ts';
import { bearerOf, claimedCluster, clockSkewSeconds, maxAgeSeconds, verifySignature } from './agent-signature.ts';
import { seenFrom } from './cluster.ts';
import { findToken, spendToken } from './join-tokens.ts';
import { mayChangeKey } from './key-change.ts';
import type { LastSeen } from './last-seen.ts';
import { everySeconds, intervalsOf } from './poll-policy.ts';

export interface AgentIdentity {
  /**
   * Spends the token and pins the key. The request must be signed with that key (header `kid: enroll`). Repeating it with the same token
   * and key gives the same answer, so that a lost response does no harm; with another key it is `join_token_used`. A cluster that has joined may
   * come with another key if the one before signed it, or if the token replaces keys; else it is `cluster_key_known`.
   */
  enroll(request: EnrollRequest, signed: SignedRequest, signal?: AbortSignal): Promise<EnrollResponse>;
  /** Verifies signature, audience, path, body and freshness, and notes that the cluster was heard. */
  authenticateAgent(signed: SignedRequest, signal?: AbortSignal): Promise<AgentCaller>;
}

export type AgentIdentityDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'log' | 'broker'> & {
  readonly capacity: Capacity;
};

interface Parts {
  readonly coordinator: Coordinator;
  readonly heard: (cluster: LastSeen, signal?: AbortSignal) => Promise<unknown>;
  readonly heartbeatSeconds: number;
}

export function createAgentIdentity(
  deps: AgentIdentityDeps,
  { coordinator, heard, heartbeatSeconds }: Parts,
): AgentIdentity {
  const { store, clock, log } = deps;

  const load = (tenant: string, id: string, signal?: AbortSignal): Promise<Item<ClusterRecord> | undefined> => {
    const { pk, sk } = key.cluster(tenant, id);
    return store.get<ClusterRecord>(pk, sk, signal);
  };

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

  return {
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
      const seenAt = key.seen(tenant, clusterId);
      const seen = await store.get<SeenRecord>(seenAt.pk, seenAt.sk, signal);
      const every = everySeconds(intervalsOf(undefined, now, heartbeatSeconds), protocol);
      const heardNow: SeenRecord = { at: now, every };
      const at = key.cluster(tenant, clusterId);
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
