/** Which agents and portals hold a WebSocket open, kept in the store: found by connection when a message arrives, by cluster or tenant when it is rung. */
import type { Clock } from '#shared/ports/clock.ts';
import type { AgentCaller } from '../../access/caller.ts';
import type { Listener, SocketHolder } from '../../events/listeners.ts';
import type { ClusterRef } from '../../ports/agent-channel.ts';
import type { Key, Store } from '../../ports/store.ts';
import { connectionLifeMs, connectionPartition, dropEntry, listenerKey, putEntry } from './connection-items.ts';
import type { ListenerTable } from './listeners.ts';

export interface ConnectionTable {
  add(connectionId: string, agent: AgentCaller, signal?: AbortSignal): Promise<void>;
  holderOf(connectionId: string, signal?: AbortSignal): Promise<SocketHolder | undefined>;
  of(cluster: ClusterRef, signal?: AbortSignal): Promise<readonly string[]>;
  /** Answers with the agent when it was known here and has no other one. */
  remove(connectionId: string, signal?: AbortSignal): Promise<AgentCaller | undefined>;
  readonly listeners: ListenerTable;
}

/** An agent has one; more are the remains of reconnections. */
const mostPerCluster = 20;

const agentKey = (connectionId: string): Key => ({ pk: connectionPartition(connectionId), sk: 'agent' });
const ofCluster = ({ tenant, clusterId }: ClusterRef): string => `t/${tenant}/connections/${clusterId}`;

export function createConnectionTable({
  store,
  clock,
  listeners,
}: {
  readonly store: Store;
  readonly clock: Clock;
  readonly listeners: ListenerTable;
}): ConnectionTable {
  /** Asked for every ping, hence at half the price first; a connection that was opened this second may only be seen by the second read. */
  const holderOf = async (connectionId: string, signal?: AbortSignal): Promise<SocketHolder | undefined> => {
    const query = { partition: connectionPartition(connectionId), limit: 1 };
    const { items } = await store.query<AgentCaller | Listener>({ ...query, eventual: true }, signal);
    const item = items[0] ?? (await store.query<AgentCaller | Listener>(query, signal)).items[0];
    if (item === undefined) return undefined;
    const { sk, value } = item;
    return sk === listenerKey(connectionId).sk ? { listener: value as Listener } : { agent: value as AgentCaller };
  };

  const of = async (cluster: ClusterRef, signal?: AbortSignal): Promise<readonly string[]> => {
    const { items } = await store.query({ partition: ofCluster(cluster), limit: mostPerCluster }, signal);
    return items.map(({ sk }) => sk);
  };

  return {
    listeners,
    holderOf,

    async add(connectionId, agent, signal) {
      const expiresAt = clock.now() + connectionLifeMs;
      const { tenant, clusterId, principal, from, requestId, protocol } = agent;
      const known = { tenant, clusterId, principal, from, requestId };
      const value: AgentCaller = protocol === undefined ? known : { ...known, protocol };
      await putEntry(store, { at: agentKey(connectionId), value, expiresAt }, signal);
      await putEntry(store, { at: { pk: ofCluster(agent), sk: connectionId }, value: {}, expiresAt }, signal);
    },

    of,

    async remove(connectionId, signal) {
      const holder = await holderOf(connectionId, signal);
      if (holder === undefined) return undefined;
      if ('listener' in holder) {
        await listeners.remove(holder.listener.tenant, [connectionId], signal);
        return undefined;
      }
      const { agent } = holder;
      // The entry by id goes last, so that a retry after a crash in between finds it again.
      await dropEntry(store, { pk: ofCluster(agent), sk: connectionId }, signal);
      await dropEntry(store, agentKey(connectionId), signal);
      return (await of(agent, signal)).length === 0 ? agent : undefined;
    },
  };
}
