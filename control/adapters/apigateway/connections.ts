/** Which agents hold a WebSocket open, kept in the store: found by connection when a message arrives, by cluster when it is rung. */
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { AgentCaller } from '../../access/caller.ts';
import type { ClusterRef } from '../../ports/agent-channel.ts';
import type { Key, Store } from '../../ports/store.ts';

export interface ConnectionTable {
  add(connectionId: string, agent: AgentCaller, signal?: AbortSignal): Promise<void>;
  agentOf(connectionId: string, signal?: AbortSignal): Promise<AgentCaller | undefined>;
  of(cluster: ClusterRef, signal?: AbortSignal): Promise<readonly string[]>;
  /** Answers with the agent when it was known here and has no other one. */
  remove(connectionId: string, signal?: AbortSignal): Promise<AgentCaller | undefined>;
}

/** API Gateway ends every connection after two hours, and `$disconnect` is best effort. */
export const connectionLifeMs = 2 * 3_600_000 + 60_000;
/** An agent has one; more are the remains of reconnections. */
const mostPerCluster = 20;

const byId = (connectionId: string): Key => ({ pk: `system/connections/${connectionId}`, sk: 'agent' });
const ofCluster = ({ tenant, clusterId }: ClusterRef): string => `t/${tenant}/connections/${clusterId}`;

export function createConnectionTable({
  store,
  clock,
}: {
  readonly store: Store;
  readonly clock: Clock;
}): ConnectionTable {
  /** Asked for every ping, hence at half the price first; a connection that was opened this second may only be seen by the second read. */
  const agentOf = async (connectionId: string, signal?: AbortSignal): Promise<AgentCaller | undefined> => {
    const { pk, sk } = byId(connectionId);
    const { items } = await store.query<AgentCaller>({ partition: pk, limit: 1, eventual: true }, signal);
    return (items[0] ?? (await store.get<AgentCaller>(pk, sk, signal)))?.value;
  };

  const of = async (cluster: ClusterRef, signal?: AbortSignal): Promise<readonly string[]> => {
    const { items } = await store.query({ partition: ofCluster(cluster), limit: mostPerCluster }, signal);
    return items.map(({ sk }) => sk);
  };

  /** One item at a time: no harm is in either alone, and a transaction of both costs twice as much. */
  async function put(at: Key, value: unknown, expiresAt: number, signal?: AbortSignal): Promise<void> {
    try {
      await store.transact([{ op: 'put', ...at, value, expiresAt }], [], signal);
    } catch (error) {
      // Delivered twice: the connection is known already.
      if (codeOf(error) !== 'version_conflict') throw error;
    }
  }

  async function drop(at: Key, signal?: AbortSignal): Promise<void> {
    try {
      await store.transact([{ op: 'delete', ...at, ifVersion: 1 }], [], signal);
    } catch (error) {
      if (codeOf(error) !== 'version_conflict') throw error;
    }
  }

  return {
    agentOf,

    async add(connectionId, agent, signal) {
      const expiresAt = clock.now() + connectionLifeMs;
      const { tenant, clusterId, principal, from, requestId, protocol } = agent;
      const known = { tenant, clusterId, principal, from, requestId };
      const value: AgentCaller = protocol === undefined ? known : { ...known, protocol };
      await put(byId(connectionId), value, expiresAt, signal);
      await put({ pk: ofCluster(agent), sk: connectionId }, {}, expiresAt, signal);
    },

    of,

    async remove(connectionId, signal) {
      const agent = await agentOf(connectionId, signal);
      if (agent === undefined) return undefined;
      // The entry by id goes last, so that a retry after a crash in between finds it again.
      await drop({ pk: ofCluster(agent), sk: connectionId }, signal);
      await drop(byId(connectionId), signal);
      return (await of(agent, signal)).length === 0 ? agent : undefined;
    },
  };
}
