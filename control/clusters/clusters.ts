/** Clusters of a tenant: join tokens, the identity of the agent, facts, liveness, leaving. */
import { AppError } from '#shared/errors/app-error.ts';
import { ClusterId, type Intervals } from '#shared/schema/protocol/agent-protocol.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { newSecret } from '../access/secrets.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import { unpublishOps } from '../directory/directory.ts';
import { countOps } from '../limits/capacity.ts';
import type { ClusterRecord, ClusterView, SeenRecord } from '../model/cluster.ts';
import type { Coordinator } from '../model/coordinator.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { DirectoryEntry } from '../model/directory-entry.ts';
import type { LabelChange } from '../model/labels.ts';
import type { ClusterRef } from '../ports/agent-channel.ts';
import { type Item, type Page, withPrefix } from '../ports/store.ts';
import { everyItem } from '../store/every-item.ts';
import { key, partition, prefix } from '../store/keys.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { type AgentIdentity, type AgentIdentityDeps, createAgentIdentity } from './agent-identity.ts';
import { clusterView } from './cluster.ts';
import { joinTokenLifeMs, putToken, tokenText } from './join-tokens.ts';
import { labelCluster } from './labels.ts';
import { createLiveness, type LastSeen } from './last-seen.ts';
import { type ClusterFilter, listClusters } from './list.ts';
import { defaultHeartbeatSeconds } from './poll-policy.ts';

export interface IssuedJoinToken {
  /** `isthmus1.…`, shown once. */
  readonly token: string;
  readonly clusterId: string;
  readonly expiresAt: number;
}

export interface Clusters extends AgentIdentity {
  /** `replaceKey`: a joined cluster may enrol with another key by it, for which the caller needs `clusters:replace-key`. */
  createJoinToken(
    caller: Caller,
    clusterId: string,
    options?: { readonly replaceKey?: boolean | undefined },
    signal?: AbortSignal,
  ): Promise<IssuedJoinToken>;
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

type ClustersDeps = AgentIdentityDeps & Pick<ControlDeps, 'heartbeatSeconds'>;

export function createClusters(deps: ClustersDeps, coordinator: Coordinator): Clusters {
  const { store, clock, ids } = deps;
  const heartbeatSeconds = deps.heartbeatSeconds ?? defaultHeartbeatSeconds;
  const { heard, lost } = createLiveness({ store, clock, heartbeatSeconds }, coordinator);

  async function mustLoad(caller: Caller, id: string, signal?: AbortSignal): Promise<Item<ClusterRecord>> {
    const { pk, sk } = key.cluster(caller.tenant, id);
    const item = await store.get<ClusterRecord>(pk, sk, signal);
    if (!item)
      throw new AppError('not_found', `there is no cluster ${JSON.stringify(id)}`, { detail: { cluster: id } });
    return item;
  }

  async function view(tenant: string, item: Item<ClusterRecord>, signal?: AbortSignal): Promise<ClusterView> {
    const { pk, sk } = key.seen(tenant, item.value.id);
    const seen = await store.get<SeenRecord>(pk, sk, signal);
    return clusterView(item.value, item.version, seen?.value, clock.now());
  }

  async function livePeerings(tenant: string, id: string, signal?: AbortSignal): Promise<string[]> {
    const live: string[] = [];
    const query = { partition: partition.cluster(tenant, id), ...withPrefix(prefix.peeringsOfCluster) };
    for await (const { value } of everyItem<{ readonly id: string }>(store, query, signal))
      if (await coordinator.isLive(tenant, value.id, signal)) live.push(value.id);
    return live;
  }

  return {
    ...createAgentIdentity(deps, { coordinator, heard, heartbeatSeconds }),
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
